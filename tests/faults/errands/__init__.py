"""A project whose handlers keep their connections to the database, and start programs."""
