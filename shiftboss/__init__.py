"""Shiftboss: a job queue in PostgreSQL, its supervised workers and their console.

The public names load on first use, so that importing the package imports no Django.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftboss.queue.authority import Authority as Authority
    from shiftboss.queue.authority import Owner as Owner
    from shiftboss.queue.authority import System as System
    from shiftboss.queue.backend import enqueue_many as enqueue_many
    from shiftboss.queue.tasks import task as task

__version__ = "0.1.0"

_HOMES = {
    "Authority": "shiftboss.queue.authority",
    "Owner": "shiftboss.queue.authority",
    "System": "shiftboss.queue.authority",
    "enqueue_many": "shiftboss.queue.backend",
    "task": "shiftboss.queue.tasks",
}

__all__ = ["Authority", "Owner", "System", "enqueue_many", "task"]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'shiftboss' has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
