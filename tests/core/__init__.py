"""Tests of the plain modules: no database, no processes."""
