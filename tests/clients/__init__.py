"""Tests of a worker's ways to the record."""
