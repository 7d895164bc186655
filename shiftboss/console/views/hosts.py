"""The hosts with their programs, one program with its lives, and what was asked of them."""

from django.http import HttpRequest, HttpResponse

from shiftboss.acts import LARGEST_ID
from shiftboss.console import commands as sentences
from shiftboss.console import filters, hosts, live, looping, program_acts
from shiftboss.console.hosts import Seat, Standing
from shiftboss.console.lives import told
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.permissions import PERMISSIONS, Act, Person
from shiftboss.queue.errors import NoSuchCommand, NoSuchProgram
from shiftboss.queue.store import commands, holds, processes, programs, read
from shiftboss.queue.store import hosts as store
from shiftboss.queue.store.commands import CommandRow
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.hosts import HostRow
from shiftboss.queue.store.processes import ProcessRow
from shiftboss.queue.store.statement import run

LIVES = 50
"""Lives on the page of a program, of those that are kept."""

RUNS = 50
"""Jobs in hand on the page of a program."""

ASKED = 10

MOST_HELD = 1000
"""Programs that are held back now; each crashes in a loop, so they are few."""


def index(request: HttpRequest) -> HttpResponse:
    """A page of the hosts, with what runs on each and how it fared. For who sees everything."""
    wanted, person = hosts.read(request.GET), person_of(request)
    with bounded():
        rows = run(store.hosts(authority=person.authority))
        fleet = hosts.arrange(rows, wanted)
        found, mixed = standings(fleet.page, by=person, per_worker=hosts.RUNS_SHOWN)
        seen = seen_by(person)
    context = {
        "whole": seen,
        "fleet": fleet,
        "filter": fleet.wanted,
        "standings": found,
        "mixtures": mixed,
        "any_host": bool(rows),
        "may_scale": person.may(Act.SCALE_POOL),
        "may_tail": person.may(Act.TAIL_PROGRAM),
        "previous": fleet.wanted.on_page(fleet.wanted.page - 1).query if fleet.wanted.page > 1 else None,
        "next": fleet.wanted.on_page(fleet.wanted.page + 1).query if fleet.wanted.page < fleet.pages else None,
    }
    return live.answer(request, "hosts", context)


def show(request: HttpRequest, host: str, program: str) -> HttpResponse:
    """One program of a host: as it stands, its lives, what was asked of it. Raises NoSuchProgram, BadFilter."""
    life_id, person = filters.id_of(request.GET, "life"), person_of(request)
    sees_logs = person.may(Act.TAIL_PROGRAM)
    with bounded():
        row = host_of(host, by=person)
        lives = lives_of(host, program, by=person, log_of=(life_id or 0) if sees_logs else None)
        standing, seat = _seat_of(row, program, by=person)
        if seat is None and not lives:
            raise NoSuchProgram(f"the host {host!r} has no program {program!r}")
        asked = run(
            commands.asked_of(
                program,
                authority=person.authority,
                host=host,
                pool=seat.pool if seat else None,
                limit=ASKED,
            )
        )
        loop = looping.told(holds_of(host, program, by=person))
        seen = seen_by(person)
    context = {
        "whole": seen,
        "host": row,
        "standing": standing,
        "program": program,
        "seat": seat,
        "version": (seat and seat.version) or (lives[0].code_version if lives else None),
        "loop": loop,
        "told": told(lives, row),
        "is_cut": len(lives) == LIVES,
        "last_words": _last_words(lives, life_id) if sees_logs else None,
        "sees_logs": sees_logs,
        "log_permission": PERMISSIONS[Act.TAIL_PROGRAM],
        "asked": asked,
        "under_way": sentences.UNDER_WAY,
        "wrong": sentences.WRONG,
        "offers": program_acts.offered(seat, row, to=person) if seat else [],
    }
    return live.answer(request, "program", context)


def command(request: HttpRequest, command_id: int) -> HttpResponse:
    """What was asked, how far it is, and what became of it. Raises NoSuchCommand."""
    person = person_of(request)
    with bounded():
        row = command_of(command_id, by=person)
        seen = seen_by(person)
    context = {
        "whole": seen,
        "command": row,
        "is_under_way": row.state in sentences.UNDER_WAY,
        "is_wrong": row.state in sentences.WRONG,
        "sees_log": row.verb == "tail" and person.may(Act.TAIL_PROGRAM),
    }
    return live.answer(request, "command", context)


def host_of(name: str, *, by: Person) -> HostRow:
    """The host of this name. Raises NoSuchProgram."""
    found = [row for row in run(store.hosts(authority=by.authority)) if row.name == name]
    if not found:
        raise NoSuchProgram(f"there is no host {name[:100]!r}: none of its agents was ever heard of")
    return found[0]


def lives_of(host: str, program: str, *, by: Person, log_of: int | None = None) -> list[ProcessRow]:
    """The newest lives of a program, with the last lines of this one alone. Raises NoSuchProgram."""
    if "\x00" in program:
        raise NoSuchProgram("no name holds a NUL")
    return run(
        processes.lives(authority=by.authority, host=host, program=program, logs=False, log_of=log_of, limit=LIVES)
    )


def holds_of(host: str, program: str, *, by: Person) -> list[HoldRow]:
    """The newest times that a program was held back."""
    return run(holds.holds(authority=by.authority, host=host, program=program, limit=looping.LOOKED))


def command_of(command_id: int, *, by: Person) -> CommandRow:
    """The command of this number. Raises NoSuchCommand."""
    row = run(commands.command(command_id, authority=by.authority)) if 0 < command_id <= LARGEST_ID else None
    if row is None:
        raise NoSuchCommand(f"there is no command {command_id}, or it was forgotten after a week")
    return row


def standings(
    rows: list[HostRow], *, by: Person, per_worker: int, only: str | None = None
) -> tuple[list[Standing], list[hosts.Mixture]]:
    """These hosts with their programs, and the pools that run several versions.

    `only`: what this program has in hand, and nobody's history.
    """
    workers = run(read.workers(authority=by.authority))
    of_program = hosts.workers_of(rows, workers)
    if only is not None:
        of_program = {key: worker for key, worker in of_program.items() if key[1] == only}
    ids = sorted({worker.id for worker in of_program.values()})
    runs = run(read.running(ids, authority=by.authority, per_worker=per_worker)) if ids else []
    wanted = [(row.name, str(one["name"])) for row in rows for one in row.programs] if only is None else []
    histories = run(programs.history(wanted, authority=by.authority)) if wanted else []
    mixed = hosts.mixtures(workers)
    held = run(holds.holds(authority=by.authority, only_open=True, limit=MOST_HELD))
    found = hosts.standings(rows, workers=of_program, runs=runs, histories=histories, mixed=mixed, holds=held)
    return found, mixed


def _seat_of(row: HostRow, program: str, *, by: Person) -> tuple[Standing, Seat | None]:
    [standing], _ = standings([row], by=by, per_worker=RUNS, only=program)
    return standing, next((seat for seat in standing.seats if seat.name == program), None)


def _last_words(lives: list[ProcessRow], life_id: int | None) -> ProcessRow | None:
    """The life whose last lines are shown: the one that is asked for, else the latest that was not to end."""
    ended = [one for one in lives if one.ended_at]
    wanted = (one for one in ended if (one.id == life_id if life_id else not one.asked))
    return next(wanted, None)
