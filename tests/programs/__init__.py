"""The programs of a host, run as they are: supervisord, PostgreSQL, the console's server, workers."""
