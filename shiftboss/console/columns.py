"""The columns of the list of jobs: which there are, which are usual for a state, and which somebody has chosen."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from shiftboss.console.conditions import member
from shiftboss.permissions import VIEW_ARGUMENTS as VIEW_ARGUMENTS
from shiftboss.queue.states import FINAL, WAITING, State

MOST = 12
"""Columns that are shown beside job and task."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in the address, its title, and whether it holds numbers."""

    name: str
    title: str | Promise
    is_number: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        """The way to the part of a job's JSON that it shows; empty for the others."""
        head, *rest = self.name.split(".")
        return member(head, rest) if rest else ()

    @property
    def shows_arguments(self) -> bool:
        """Whether what it shows needs a permission."""
        return self.name.startswith("args.")


COLUMNS = {
    column.name: column
    for column in (
        Column("state", _("State")),
        Column("queue", _("Queue")),
        Column("owner", _("Owner")),
        Column("key", _("Key")),
        Column("tags", _("Tags")),
        Column("priority", _("Priority"), is_number=True),
        Column("failures", _("Failures"), is_number=True),
        Column("losses", _("Losses"), is_number=True),
        Column("worker", _("Worker"), is_number=True),
        Column("enqueued", _("Enqueued")),
        Column("due", _("Due")),
        Column("started", _("Started")),
        Column("quarantined", _("Quarantined")),
        Column("took", _("Took"), is_number=True),
        Column("finished", _("Finished")),
        Column("rerun_of", _("Rerun of"), is_number=True),
        Column("batch", _("Backfill"), is_number=True),
    )
}
_MEMBER = re.compile(r"(args|meta)(\.[\w-]{1,60}){1,6}")


def read(words: Iterable[str]) -> tuple[str, ...]:
    """The columns that an address names, each once; what is no column is left out."""
    known = [word for word in dict.fromkeys(words) if word in COLUMNS or _MEMBER.fullmatch(word)]
    return tuple(known[:MOST])


def usual(states: Iterable[State]) -> tuple[str, ...]:
    """The columns that are shown where nobody has chosen any."""
    within = frozenset(states)
    names = ["queue", "priority", "failures"]
    if len(within) > 1:
        names.insert(0, "state")
    if within == {State.RUNNING}:
        names.append("worker")
    if within <= WAITING:
        names.append("due")
    elif within <= FINAL:
        names += ["took", "finished"]
    elif within == {State.QUARANTINED}:
        names.append("quarantined")
    elif within == {State.RUNNING}:
        names.append("started")
    else:
        names.append("enqueued")
    return tuple(names)


def shown(chosen: Iterable[str], states: Iterable[State]) -> list[Column]:
    """The columns of a list."""
    return [COLUMNS.get(name) or Column(name, name) for name in tuple(chosen) or usual(states)]
