"""Tests of the record: every verb and read on a real PostgreSQL."""
