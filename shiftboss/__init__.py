"""Shiftboss: a job queue in PostgreSQL, its supervised workers and their console.

The public names load on first use, so that importing the package imports no Django.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftboss.queue.authority import Authority as Authority
    from shiftboss.queue.authority import Owner as Owner
    from shiftboss.queue.authority import Scoped as Scoped
    from shiftboss.queue.authority import System as System
    from shiftboss.queue.authority import owner_of_request as owner_of_request
    from shiftboss.queue.authority import owner_of_user as owner_of_user
    from shiftboss.queue.backend import enqueue_many as enqueue_many
    from shiftboss.queue.backfills import Backfilled as Backfilled
    from shiftboss.queue.backfills import backfill as backfill
    from shiftboss.queue.clients.memory.functions import Functions as Functions
    from shiftboss.queue.clients.memory.store import MemoryStore as MemoryStore
    from shiftboss.queue.errors import Busy as Busy
    from shiftboss.queue.errors import InTransaction as InTransaction
    from shiftboss.queue.errors import InvalidJob as InvalidJob
    from shiftboss.queue.errors import KeyHeld as KeyHeld
    from shiftboss.queue.errors import LeaseLost as LeaseLost
    from shiftboss.queue.errors import MovedOn as MovedOn
    from shiftboss.queue.errors import NoSuchJob as NoSuchJob
    from shiftboss.queue.errors import NotAllowed as NotAllowed
    from shiftboss.queue.errors import NotStorable as NotStorable
    from shiftboss.queue.errors import SchemaTooOld as SchemaTooOld
    from shiftboss.queue.errors import SecretUnavailable as SecretUnavailable
    from shiftboss.queue.errors import ShiftbossError as ShiftbossError
    from shiftboss.queue.errors import StillRunning as StillRunning
    from shiftboss.queue.errors import StoreUnavailable as StoreUnavailable
    from shiftboss.queue.errors import UnknownTask as UnknownTask
    from shiftboss.queue.errors import UnsupportedDatabase as UnsupportedDatabase
    from shiftboss.queue.errors import WorkerEnded as WorkerEnded
    from shiftboss.queue.jobs import OnConflict as OnConflict
    from shiftboss.queue.keys import Scope as Scope
    from shiftboss.queue.observation import JobFacts as JobFacts
    from shiftboss.queue.observation import WorkerFacts as WorkerFacts
    from shiftboss.queue.resources import Resource as Resource
    from shiftboss.queue.results import ShiftbossResult as ShiftbossResult
    from shiftboss.queue.runtime.context import Cancelled as Cancelled
    from shiftboss.queue.runtime.context import Cause as Cause
    from shiftboss.queue.runtime.context import Context as Context
    from shiftboss.queue.runtime.notes import Checkpoint as Checkpoint
    from shiftboss.queue.runtime.worker import Worker as Worker
    from shiftboss.queue.secrets import Secret as Secret
    from shiftboss.queue.tasks import ShiftbossTask as ShiftbossTask
    from shiftboss.queue.tasks import task as task
    from shiftboss.queue.within import worker_of_settings as worker_of_settings

__version__ = "0.1.0"

_HOMES = {
    "Authority": "shiftboss.queue.authority",
    "Backfilled": "shiftboss.queue.backfills",
    "Busy": "shiftboss.queue.errors",
    "Cancelled": "shiftboss.queue.runtime.context",
    "Cause": "shiftboss.queue.runtime.context",
    "Checkpoint": "shiftboss.queue.runtime.notes",
    "Context": "shiftboss.queue.runtime.context",
    "Functions": "shiftboss.queue.clients.memory.functions",
    "InTransaction": "shiftboss.queue.errors",
    "InvalidJob": "shiftboss.queue.errors",
    "JobFacts": "shiftboss.queue.observation",
    "KeyHeld": "shiftboss.queue.errors",
    "LeaseLost": "shiftboss.queue.errors",
    "MemoryStore": "shiftboss.queue.clients.memory.store",
    "MovedOn": "shiftboss.queue.errors",
    "NoSuchJob": "shiftboss.queue.errors",
    "NotAllowed": "shiftboss.queue.errors",
    "NotStorable": "shiftboss.queue.errors",
    "OnConflict": "shiftboss.queue.jobs",
    "Owner": "shiftboss.queue.authority",
    "Resource": "shiftboss.queue.resources",
    "SchemaTooOld": "shiftboss.queue.errors",
    "Scope": "shiftboss.queue.keys",
    "Scoped": "shiftboss.queue.authority",
    "Secret": "shiftboss.queue.secrets",
    "SecretUnavailable": "shiftboss.queue.errors",
    "ShiftbossError": "shiftboss.queue.errors",
    "ShiftbossResult": "shiftboss.queue.results",
    "ShiftbossTask": "shiftboss.queue.tasks",
    "StillRunning": "shiftboss.queue.errors",
    "StoreUnavailable": "shiftboss.queue.errors",
    "System": "shiftboss.queue.authority",
    "UnknownTask": "shiftboss.queue.errors",
    "UnsupportedDatabase": "shiftboss.queue.errors",
    "Worker": "shiftboss.queue.runtime.worker",
    "WorkerEnded": "shiftboss.queue.errors",
    "WorkerFacts": "shiftboss.queue.observation",
    "backfill": "shiftboss.queue.backfills",
    "enqueue_many": "shiftboss.queue.backend",
    "owner_of_request": "shiftboss.queue.authority",
    "owner_of_user": "shiftboss.queue.authority",
    "task": "shiftboss.queue.tasks",
    "worker_of_settings": "shiftboss.queue.within",
}

__all__ = [
    "Authority",
    "Backfilled",
    "Busy",
    "Cancelled",
    "Cause",
    "Checkpoint",
    "Context",
    "Functions",
    "InTransaction",
    "InvalidJob",
    "JobFacts",
    "KeyHeld",
    "LeaseLost",
    "MemoryStore",
    "MovedOn",
    "NoSuchJob",
    "NotAllowed",
    "NotStorable",
    "OnConflict",
    "Owner",
    "Resource",
    "SchemaTooOld",
    "Scope",
    "Scoped",
    "Secret",
    "SecretUnavailable",
    "ShiftbossError",
    "ShiftbossResult",
    "ShiftbossTask",
    "StillRunning",
    "StoreUnavailable",
    "System",
    "UnknownTask",
    "UnsupportedDatabase",
    "Worker",
    "WorkerEnded",
    "WorkerFacts",
    "backfill",
    "enqueue_many",
    "owner_of_request",
    "owner_of_user",
    "task",
    "worker_of_settings",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'shiftboss' has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
