"""The HTTP API: what the console does, for programs. `mount` is the way in."""
