"""Fails at import."""

raise RuntimeError("this module cannot be imported")
