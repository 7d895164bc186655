"""`shiftboss roll`: the workers of pools restarted one after the other, over all hosts."""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

from shiftboss import acts
from shiftboss.cli.acting import check_reason, permitted, person_of, worded
from shiftboss.cli.command import (
    Commands,
    Refused,
    WrongUsage,
    identity,
    take_format,
    take_person,
    take_reason,
)
from shiftboss.cli.output import as_json, cell, moment, table
from shiftboss.cli.project import open_record
from shiftboss.console.rolls import facts, step_facts
from shiftboss.permissions import VIEW, Act, Person, require
from shiftboss.queue.store import rolls
from shiftboss.queue.store.rolls import RollRow, StepRow
from shiftboss.queue.store.statement import run

LOOK_SECONDS = 0.3
"""How often the record is asked how far a roll is, which the agents of the hosts carry out."""

MOST = 20

EXAMPLES = """\
examples:
  shiftboss roll --reason "new code"
  shiftboss roll default --reason "new code" --code-version v42
  shiftboss roll --follow 7
  shiftboss roll --cancel 7 --reason "v42 leaks"
  shiftboss roll --list

One worker at a time, over all hosts: it finishes what it runs, ends, and is started anew; the next one is touched
once it lives and claims. The agents of the hosts do it, so it goes on where this command is ended. Where a worker
does not come up, or one that had come up ends, the roll stops and says why: the rest stays as it is.
Exit codes: 0 done, 1 stopped, cancelled, or not done within --wait; 130 ended by Ctrl-C, and the roll goes on.
"""

STATES = {
    "waiting": "waiting",
    "draining": "finishes what it runs",
    "starting": "starting",
    "proving": "runs, and is to live and claim",
    "done": "done",
    "failed": "failed",
}


def declare(to: Commands) -> None:
    """Add the command."""
    parser = to.add("roll", roll, help="Restart workers one after the other", epilog=EXAMPLES)
    parser.add_argument("pool", metavar="POOL", nargs="?", help="only the workers of this pool (default: all)")
    parser.add_argument(
        "--code-version", metavar="TEXT", help="stop at a worker that comes up with another SHIFTBOSS_CODE_VERSION"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--follow", type=identity, metavar="ID", help="only tell how a roll goes on")
    instead.add_argument("--cancel", type=identity, metavar="ID", help="touch no further worker of a roll")
    instead.add_argument("--list", action="store_true", help="list the last rolls")
    take_wait(parser)
    take_reason(parser, needed=True)
    parser.add_argument("--yes", action="store_true", help="accepted as everywhere; nothing is asked")
    take_person(parser)
    take_format(parser)


def take_wait(parser: argparse.ArgumentParser) -> None:
    """The option `--wait`."""
    parser.add_argument(
        "--wait", type=_seconds, metavar="SECONDS", help="how long to wait for its end (default: until then)"
    )


def roll(given: argparse.Namespace) -> int:
    """Begin a roll, or follow, cancel or list."""
    if given.pool and (given.follow or given.cancel or given.list):
        raise WrongUsage("a pool goes without --follow, --cancel and --list")
    if given.list or given.follow:
        open_record(given)
        person = person_of(given)
        require(VIEW, by=person)
        return _list(given, person) if given.list else follow(given, person, given.follow)
    act = Act.CANCEL_ROLL if given.cancel else Act.ROLL_POOL
    check_reason(act, given)
    open_record(given)
    person = permitted(act, given)
    if given.cancel:
        worded(partial(acts.cancel_roll, given.cancel, by=person, reason=given.reason))
        return _cancelled(given, person)
    return follow(given, person, begin(given, person, given.pool))


def begin(given: argparse.Namespace, person: Person, pool: str | None) -> int:
    """Begin a roll; its id."""
    do = partial(acts.roll_pool, pool, by=person, reason=given.reason, code_wanted=given.code_version)
    return worded(do).roll_id or 0


def follow(given: argparse.Namespace, person: Person, roll_id: int) -> int:
    """Tell how a roll goes on, until its end or as long as `--wait` says; the exit code."""
    row, steps = watch(given, person, roll_id)
    if given.format == "json":
        print(as_json({"roll": facts(row), "steps": [step_facts(step) for step in steps]}))
    return 0 if row.state == "done" or (given.wait == 0 and row.state == "running") else 1


def watch(given: argparse.Namespace, person: Person, roll_id: int) -> tuple[RollRow, list[StepRow]]:
    """Look on, and say in words what happens, until the end of a roll or as long as `--wait` says."""
    say: Callable[[str], None] = (lambda _: None) if given.format == "json" else partial(print, flush=True)
    deadline = None if given.wait is None else time.monotonic() + given.wait
    said: dict[int, str] = {}
    row = _known(person, roll_id)
    say(f"rolling restart {row.id} of {_what(row)}: {row.steps} workers, one after the other")
    for host in row.silent:
        print(f"the agent of {cell(host)} is silent: its workers stay as they are", file=sys.stderr, flush=True)
    try:
        while True:
            row = _known(person, roll_id)
            steps = run(rolls.steps(roll_id, authority=person.authority))
            for step in steps:
                if step.state != said.get(step.number, "waiting"):
                    said[step.number] = step.state
                    say(f"  {step.number}/{row.steps} {_line(step)}")
            # What is in hand is brought to its end, also where the roll has ended before.
            is_over = row.state != "running" and not any(step.state in rolls.IN_HAND for step in steps)
            if is_over or (deadline is not None and time.monotonic() >= deadline):
                say(f"rolling restart {row.id}: {_end(row)}")
                return row, steps
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        print(f"it goes on: shiftboss roll --follow {roll_id}", file=sys.stderr, flush=True)
        raise


def _cancelled(given: argparse.Namespace, person: Person) -> int:
    row = _known(person, given.cancel)
    if given.format == "json":
        print(as_json({"roll": facts(row)}))
    else:
        print(f"rolling restart {row.id}: {_end(row)}; {row.done} of {row.steps} workers were done before")
    return 0


def _list(given: argparse.Namespace, person: Person) -> int:
    rows = run(rolls.rolls(authority=person.authority, limit=MOST))
    if given.format == "json":
        print(as_json({"rolls": [facts(row) for row in rows]}))
        return 0
    heads = ("ID", "POOL", "STATE", "DONE", "ASKED", "BY", "REASON", "WHY")
    cells = [
        (
            row.id,
            row.pool or "all",
            row.state,
            f"{row.done}/{row.steps}",
            moment(row.asked_at),
            row.asked_by,
            row.reason,
            row.why,
        )
        for row in rows
    ]
    print(table(heads, cells, right=frozenset({"ID", "DONE"})) if cells else "no rolling restarts")
    return 0


def _known(person: Person, roll_id: int) -> RollRow:
    row = run(rolls.roll(roll_id, authority=person.authority))
    if row is None:
        raise Refused(f"there is no rolling restart {roll_id}, or it was forgotten 30 days after its end")
    return row


def _what(row: RollRow) -> str:
    return f"the pool {cell(row.pool)}" if row.pool else "all pools"


def _line(step: StepRow) -> str:
    said = f"{cell(step.program)} on {cell(step.host)}: {STATES[step.state]}"
    if step.state == "done" and step.worker_after is None:
        return f"{said}: somebody had stopped it, and it stays down"
    if step.state == "done" and (step.code_before or step.code_after):
        return f"{said}, {cell(step.code_before)} → {cell(step.code_after)}"
    return f"{said}: {cell(step.why)}" if step.why else said


def _end(row: RollRow) -> str:
    match row.state:
        case "stopped":
            return f"stopped: {cell(row.why)}"
        case "running":
            waits = (
                "" if row.silent_seconds is None else f", and waits for a host silent {row.silent_seconds:.0f} s"
            )
            return f"{row.done} of {row.steps} done{waits}; it goes on: shiftboss roll --follow {row.id}"
    return row.state


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 99999")
    return int(text)
