"""What the record says of hosts, their programs, and what was asked of them."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router

from shiftboss.acts import LARGEST_ID
from shiftboss.console import hosts, program_acts
from shiftboss.console import names as names  # makes names of hosts parts of addresses
from shiftboss.console.api import schemas
from shiftboss.console.api.door import caller
from shiftboss.console.api.reads import answers
from shiftboss.console.hosts import Seat, Standing
from shiftboss.console.record import bounded
from shiftboss.console.views.hosts import command_of, holds_of, host_of, lives_of, standings
from shiftboss.permissions import VIEW, Act, Person, require
from shiftboss.queue.errors import NoSuchCommand, NoSuchProgram
from shiftboss.queue.store import hosts as store
from shiftboss.queue.store import processes
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.processes import ProcessRow
from shiftboss.queue.store.statement import run

JOBS = 20
"""Of what a program has in hand so much is told."""

LOGS = 5
"""Of the newest ends the last lines are told."""

MOST_HOSTS = 100

router = Router(tags=["hosts"])


@router.get(
    "/hosts", response=answers(schemas.Hosts), summary="The hosts with their programs", operation_id="list_hosts"
)
def list_hosts(request: HttpRequest) -> Any:
    """What the agents of the hosts saw last: of at most 100 hosts, those in trouble first."""
    by = _who(request)
    with bounded():
        rows = run(store.hosts(authority=by.authority))
        rows = hosts.arranged(rows)[:MOST_HOSTS]
        found, _ = standings(rows, by=by, per_worker=JOBS)
    return {"hosts": [_host(one) for one in found]}


@router.get(
    "/hosts/{name:host}", response=answers(schemas.Host, 404), summary="One host", operation_id="show_host"
)
def show_host(request: HttpRequest, host: str) -> Any:
    """A host with its programs. A slash in its name is written as `%252F`."""
    by = _who(request)
    with bounded():
        [found], _ = standings([host_of(host, by=by)], by=by, per_worker=JOBS)
    return _host(found)


@router.get(
    "/hosts/{name:host}/programs/{name:program}",
    response=answers(schemas.ProgramDetail, 404),
    summary="One program of a host",
    operation_id="show_program",
)
def show_program(request: HttpRequest, host: str, program: str) -> Any:
    """A program as it stands, with its lives."""
    by = _who(request)
    with bounded():
        row = host_of(host, by=by)
        [standing], _ = standings([row], by=by, per_worker=JOBS)
        seat = next((one for one in standing.seats if one.name == program), None)
        if seat is None:
            raise NoSuchProgram(f"the host {host!r} has no program {program!r}")
        held = holds_of(host, program, by=by)
        lives = lives_of(host, program, by=by)
        texts = _logs(host, program, by=by)
    return _program(seat) | {
        "host": host,
        "alive": row.alive,
        "holds": [_hold(one) for one in held],
        "lives": [_life(one, texts.get(one.id)) for one in lives],
        "acts": [one.act for one in program_acts.offered(seat, row, to=by)],
    }


@router.get(
    "/commands/{command_id}",
    response=answers(schemas.Command, 404),
    summary="What was asked of a host",
    operation_id="show_command",
)
def show_command(request: HttpRequest, command_id: str) -> Any:
    """A command, for a week, and what became of it."""
    by = _who(request)
    is_number = command_id.isascii() and command_id.isdigit() and len(command_id) < 20
    if not is_number or int(command_id) > LARGEST_ID:
        raise NoSuchCommand(f"there is no command {command_id[:40]!r}")
    with bounded():
        row = command_of(int(command_id), by=by)
    told = asdict(row) | {"id": str(row.id)}
    if row.verb == "tail" and not (row.asked_by == by.name and by.may(Act.TAIL_PROGRAM)):
        told["result"] = None
    return told


def _who(request: HttpRequest) -> Person:
    by = caller(request)
    require(VIEW, by=by)
    return by


def _host(standing: Standing) -> dict[str, Any]:
    row = standing.row
    names = ("name", "hostname", "alive", "heartbeat_at", "heartbeat_age_seconds", "trouble", "gap_from")
    facts = {name: getattr(row, name) for name in (*names, "gap_until", "dropped", "home", "code_version")}
    return facts | {
        "resources": row.resources,
        "short_of": [asdict(one) for one in row.short_of],
        "programs": [_program(seat) for seat in standing.seats],
    }


def _program(seat: Seat) -> dict[str, Any]:
    hours = seat.history.hours if seat.history else []
    return {
        **{
            name: getattr(seat, name)
            for name in ("name", "state", "pid", "pool", "memory_kb", "cores", "trouble", "held_until")
        },
        "since": None if seat.since is None else datetime.fromtimestamp(seat.since, UTC),
        "code_version": seat.version,
        "worker_id": str(seat.worker.id) if seat.worker else None,
        "jobs": [str(one.id) for one in seat.runs],
        "last_day": {"ends": sum(one.ends for one in hours), "wrong": sum(one.wrong for one in hours)},
        "last_end": _end(seat),
    }


def _hold(row: HoldRow) -> dict[str, Any]:
    names = ("held_at", "until", "step", "released_at", "released_as", "released_by")
    poison_job = None if row.poison_job is None else str(row.poison_job)
    return {**{name: getattr(row, name) for name in names}, "why": row.evidence, "poison_job": poison_job}


def _end(seat: Seat) -> dict[str, Any] | None:
    found = seat.history
    if found is None or found.ended_at is None:
        return None
    names = ("ending", "code", "signal", "asked", "uptime_seconds")
    return {"at": found.ended_at, **{name: getattr(found, name) for name in names}}


def _logs(host: str, program: str, *, by: Person) -> dict[int, str | None]:
    if not by.may(Act.TAIL_PROGRAM):
        return {}
    rows = run(processes.lives(authority=by.authority, host=host, program=program, ended=True, limit=LOGS))
    return {row.id: row.log for row in rows}


def _life(row: ProcessRow, log: str | None) -> dict[str, Any]:
    return asdict(row) | {
        "id": str(row.id),
        "worker_id": None if row.worker_id is None else str(row.worker_id),
        "log": log,
    }
