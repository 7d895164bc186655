"""Handlers that say of each attempt when it began, that it still runs, and how it ended."""
