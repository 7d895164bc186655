"""Hosts and their agents. One agent watches a host at a time: the one who holds its lease."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.shortage import Shortage, shortages
from shiftboss.queue.store.statement import Statement, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who wants to watch a host: `name` is the host's, `hostname` that of the machine its workers name."""

    name: str
    hostname: str
    pid: int
    home: str
    code_version: str | None
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host as its agent saw it last. `trouble` says why its supervisor does not answer, None where it does."""

    name: str
    hostname: str
    pid: int
    home: str
    code_version: str | None
    started_at: datetime
    heartbeat_at: datetime
    stopped_at: datetime | None
    gap_from: datetime | None
    gap_until: datetime | None
    trouble: str | None
    programs: list[dict[str, Any]]
    dropped: int
    resources: dict[str, Any] | None
    alive: bool
    heartbeat_age_seconds: float

    @property
    def short_of(self) -> tuple[Shortage, ...]:
        """What it runs short of; of a host whose agent is silent nothing is known."""
        return shortages(self.resources) if self.alive else ()


def _host(*row: Any) -> HostRow:
    values = list(row)
    values[11] = json.loads(values[11])
    values[13] = values[13] and json.loads(values[13])
    return HostRow(*values)


def _first(value: Any) -> Any:
    return value


_TAKE = Statement("take_host", _first)
_BEAT = Statement("beat_host", _first)
_LEAVE = Statement("leave_host", _first)
_HOSTS = Statement("hosts", _host)


def take(agent: Agent, *, authority: Authority) -> Verb[int | None]:
    """Become the agent of a host: the fence to show with everything else. None while another's lease runs."""
    require_system(authority, "take a host")
    rows: list[int] = yield _TAKE.call(
        name=agent.name,
        hostname=agent.hostname,
        pid=agent.pid,
        home=agent.home,
        code_version=agent.code_version,
        lease_seconds=agent.lease_seconds,
    )
    return rows[0] if rows else None


def beat(
    name: str,
    *,
    authority: Authority,
    fence: int,
    programs: Sequence[Mapping[str, Any]],
    trouble: str | None,
    resources: Mapping[str, Any] | None = None,
    dropped: int = 0,
) -> Verb[bool]:
    """Say that the agent lives and what it sees; False where it is not the host's agent any more.

    `resources` is what is left of what programs need; `dropped`, how many more lives it could not remember since
    the last time.
    """
    require_system(authority, "beat for a host")
    rows: list[int] = yield _BEAT.call(
        name=name,
        fence=fence,
        programs=json.dumps(list(programs)),
        trouble=trouble,
        resources=None if resources is None else json.dumps(dict(resources)),
        dropped=dropped,
    )
    return bool(rows)


def leave(name: str, *, authority: Authority, fence: int) -> Verb[bool]:
    """End as the host's agent, so that the next one need not wait; False where it was not any more."""
    require_system(authority, "leave a host")
    rows: list[int] = yield _LEAVE.call(name=name, fence=fence)
    return bool(rows)


def hosts(*, authority: Authority) -> Verb[list[HostRow]]:
    """All hosts by name."""
    require_system(authority, "hosts")
    rows: list[HostRow] = yield _HOSTS.call()
    return rows
