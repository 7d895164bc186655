"""The record: one module per actor, one SQL file per statement.

Every function here is a *verb*: a generator that yields the statements it needs and returns its result.
`run` (Django's connection) and `arun` (a psycopg async connection) drive it; see `statement.py`.
"""
