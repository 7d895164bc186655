"""Who acts, and what is permitted: one Django permission for each act, and the roles that bundle them."""

import os
import pwd
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from shiftboss.queue.authority import Staff, System
from shiftboss.queue.authorizers import scope_of
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store.audit import Actor


class Via(StrEnum):
    """Through which door an act came."""

    CONSOLE = "console"
    API = "api"
    CLI = "cli"
    CODE = "code"


class Act(StrEnum):
    """What a person can do; the one name of it in the audit, in addresses and on buttons."""

    CANCEL = "cancel"
    EXPEDITE = "expedite"
    RERUN = "rerun"
    REINSTATE = "reinstate"
    DISCARD = "discard"
    QUARANTINE = "quarantine"
    REPRIORITISE = "reprioritise"
    RESCHEDULE = "reschedule"
    EDIT = "edit"
    REVEAL = "reveal"
    PAUSE = "pause"
    RESUME = "resume"
    LIMIT = "limit"
    PURGE = "purge"
    PAUSE_BACKFILL = "pause_backfill"
    RESUME_BACKFILL = "resume_backfill"
    RETRY_BACKFILL = "retry_backfill"
    CANCEL_BACKFILL = "cancel_backfill"
    DRAIN_WORKER = "drain_worker"
    STOP_WORKER = "stop_worker"
    START_PROGRAM = "start_program"
    DRAIN_PROGRAM = "drain_program"
    STOP_PROGRAM = "stop_program"
    KILL_PROGRAM = "kill_program"
    RESTART_PROGRAM = "restart_program"
    RELEASE_PROGRAM = "release_program"
    TAIL_PROGRAM = "tail_program"
    SCALE_POOL = "scale_pool"
    ROLL_POOL = "roll_pool"
    CANCEL_ROLL = "cancel_roll"
    CREATE_TOKEN = "create_token"
    REVOKE_TOKEN = "revoke_token"


PERMISSIONS: dict[Act, str] = {
    Act.CANCEL: "shiftboss.cancel_job",
    Act.EXPEDITE: "shiftboss.expedite_job",
    Act.RERUN: "shiftboss.rerun_job",
    Act.REINSTATE: "shiftboss.reinstate_job",
    Act.DISCARD: "shiftboss.discard_job",
    Act.QUARANTINE: "shiftboss.quarantine_job",
    Act.REPRIORITISE: "shiftboss.reprioritise_job",
    Act.RESCHEDULE: "shiftboss.reschedule_job",
    Act.EDIT: "shiftboss.edit_job",
    Act.REVEAL: "shiftboss.view_arguments",
    Act.PAUSE: "shiftboss.pause_queue",
    Act.RESUME: "shiftboss.resume_queue",
    Act.LIMIT: "shiftboss.limit_queue",
    Act.PURGE: "shiftboss.purge_history",
    Act.PAUSE_BACKFILL: "shiftboss.backfill_task",
    Act.RESUME_BACKFILL: "shiftboss.backfill_task",
    Act.RETRY_BACKFILL: "shiftboss.backfill_task",
    Act.CANCEL_BACKFILL: "shiftboss.backfill_task",
    Act.DRAIN_WORKER: "shiftboss.drain_worker",
    Act.STOP_WORKER: "shiftboss.stop_worker",
    Act.START_PROGRAM: "shiftboss.start_program",
    Act.DRAIN_PROGRAM: "shiftboss.drain_program",
    Act.STOP_PROGRAM: "shiftboss.stop_program",
    Act.KILL_PROGRAM: "shiftboss.kill_program",
    Act.RESTART_PROGRAM: "shiftboss.restart_program",
    Act.RELEASE_PROGRAM: "shiftboss.release_program",
    Act.TAIL_PROGRAM: "shiftboss.tail_program",
    Act.SCALE_POOL: "shiftboss.scale_pool",
    Act.ROLL_POOL: "shiftboss.roll_pool",
    Act.CANCEL_ROLL: "shiftboss.roll_pool",
    Act.CREATE_TOKEN: "shiftboss.add_token",
    Act.REVOKE_TOKEN: "shiftboss.change_token",
}
VIEW = "shiftboss.view_job"
VIEW_AUDIT = "shiftboss.view_audit"
VIEW_ARGUMENTS = PERMISSIONS[Act.REVEAL]
"""Arguments hold customers' data: who reveals those of a job does an act, which the audit keeps."""
VIEW_TRACEBACK = "shiftboss.view_traceback"
"""Tracebacks and what handlers have written: they show code, and now and then a customer's data."""

NEED_REASON = frozenset(
    {
        *(Act.CANCEL, Act.DISCARD, Act.QUARANTINE, Act.PAUSE, Act.LIMIT, Act.PURGE),
        *(Act.PAUSE_BACKFILL, Act.CANCEL_BACKFILL),
        *(Act.DRAIN_WORKER, Act.STOP_WORKER),
        *(Act.DRAIN_PROGRAM, Act.STOP_PROGRAM, Act.KILL_PROGRAM, Act.RESTART_PROGRAM, Act.SCALE_POOL),
        *(Act.ROLL_POOL, Act.CANCEL_ROLL),
    }
)
"""Acts that stop or destroy something: they are not done without a reason."""

ADMINS_ACTS = frozenset(
    {Act.PURGE, Act.STOP_WORKER, Act.STOP_PROGRAM, Act.KILL_PROGRAM, Act.CREATE_TOKEN, Act.REVOKE_TOKEN}
)
"""Acts that concern the installation and not its daily work, or cut off all that a worker runs."""

_OPERATORS = frozenset(
    {VIEW, VIEW_AUDIT, VIEW_TRACEBACK} | {PERMISSIONS[act] for act in frozenset(Act) - ADMINS_ACTS}
)

ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset({VIEW}),
    "operator": _OPERATORS,
    "admin": _OPERATORS
    | {PERMISSIONS[act] for act in ADMINS_ACTS}
    | {"shiftboss.view_token", "shiftboss.delete_token"},
}
"""Permissions by role; `shiftboss_roles` makes a group of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who acts, through which door, what is permitted to them, and (`authority`) on which jobs.

    `id` is a text; none for the system.
    """

    kind: str
    id: str | None
    name: str
    via: Via
    allows: Callable[[str], bool]
    authority: Staff

    @classmethod
    def of_user(cls, user: Any, *, via: Via) -> "Person":
        """A user of Django's. Only staff may do anything, whatever else was permitted to them.

        Raises NotAllowed where the project's own hook tells no scope.
        """
        name = user.get_username()
        allows, authority = _allowed_to(user), scope_of(user)
        return cls(kind="user", id=str(user.pk), name=name, via=via, allows=allows, authority=authority)

    @classmethod
    def of_token(cls, user: Any, *, token_id: int, token_name: str) -> "Person":
        """A user of Django's by an API token of theirs: with their permissions, but another one who asks.

        Two tokens of one user are two, so that the request ids of one program do not meet those of another.
        """
        name = f"{user.get_username()} (token {token_name})"
        identity = f"{user.pk}/{token_id}"
        allows, authority = _allowed_to(user), scope_of(user)
        return cls(kind="token", id=identity, name=name, via=Via.API, allows=allows, authority=authority)

    @classmethod
    def of_shell(cls) -> "Person":
        """Whoever runs this process: they hold the database's password, so everything is permitted to them."""
        # Not as the environment says: the audit is not to believe a variable.
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a uid without a name
            name = str(os.getuid())
        name = f"os:{name}@{socket.gethostname()}"
        identity, authority = str(os.getuid()), System()
        return cls(kind="os", id=identity, name=name, via=Via.CLI, allows=lambda _: True, authority=authority)

    @property
    def as_actor(self) -> Actor:
        """The person as the audit knows them."""
        return Actor(self.kind, self.id)

    def without(self, permission: str) -> "Person":
        """The same person, as if they had not this permission."""
        return replace(self, allows=lambda asked: asked != permission and self.allows(asked))

    def may(self, act: Act) -> bool:
        """Whether this act is permitted to them."""
        return self.allows(PERMISSIONS[act])


def _allowed_to(user: Any) -> Callable[[str], bool]:
    if not (user.is_active and getattr(user, "is_staff", False)):
        return lambda _: False
    allows: Callable[[str], bool] = user.has_perm
    return allows


class Lacking(NotAllowed):
    """Somebody lacks `permission`, or is not of the staff, which may do nothing."""

    def __init__(self, name: str, permission: str) -> None:
        super().__init__(f"{name} lacks the permission {permission}, or is not an active staff account")
        self.permission = permission


def require(permission: str, *, by: Person) -> None:
    """Refuse who lacks a permission. Raises Lacking."""
    if not by.allows(permission):
        raise Lacking(by.name, permission)
