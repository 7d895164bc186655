"""Tests of the worker's processes. Also a Django app, so that workers find `tasks.py`."""
