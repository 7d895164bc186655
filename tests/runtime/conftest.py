"""Tests with real workers."""

from tests.runtime.fixtures import house

__all__ = ["house"]
