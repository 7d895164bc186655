"""The process: a keeper, which claims, heartbeats and reports, and executors, which run handlers.

Nothing here imports Django or the store. The keeper reaches the record through a `QueueClient` (ports.py).
"""
