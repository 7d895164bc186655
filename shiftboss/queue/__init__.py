"""The engine: states, the record in PostgreSQL, and the processes that work on it."""
