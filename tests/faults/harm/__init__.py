"""Handlers that do to their process, to its pipe and to their payloads what no handler should."""
