"""Helpers for a project's own tests, used as a project uses them."""
