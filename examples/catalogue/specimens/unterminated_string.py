"""Broken on purpose: a string without an end."""

TEXT = 'it never ends
NEXT = 1
