"""`shiftboss workers`: look at workers, drain and stop them."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.cli.acting import check_consent, check_reason, confirm, permitted, person_of, worded
from shiftboss.cli.command import Commands, identity, take_consent, take_format, take_person, take_reason
from shiftboss.cli.output import as_json, cell, table
from shiftboss.cli.project import open_record
from shiftboss.console import standing
from shiftboss.permissions import NEED_REASON, VIEW, Act, Person, require
from shiftboss.queue.errors import Busy, NoSuchWorker, OrderRefused
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run

GROUP_EXAMPLES = """\
examples:
  shiftboss workers list
  shiftboss workers drain 7 --reason "its host is to be rebooted"
  shiftboss workers stop 7 --reason "its jobs hang" --yes

Each act is the one of the console and of the API: the same name, permission and entry of the audit. What runs a
worker (supervisord, a container) decides whether another process takes its place.
"""

LIST_EXAMPLES = """\
examples:
  shiftboss workers list
  shiftboss workers list --format json | jq -r '.workers[] | select(.ordered).id'

Workers that live, or were seen within the last hour. LAG is how late the last heartbeat was sent, WORST the worst
so far; CPU is in cores, over all of the worker's time.
"""

VERBS: dict[Act, tuple[str, Callable[..., Acted], str, str]] = {
    Act.DRAIN_WORKER: (
        "drain",
        acts.drain_worker,
        "Have workers claim no more, and end once their runs have",
        """\
examples:
  shiftboss workers drain 7 --reason "its host is to be rebooted"
  shiftboss workers drain 7 8 9 --reason "the pool moves to other hosts"

Runs have the worker's DRAIN_SECONDS; what has not ended then is given back. An order is not taken back.
""",
    ),
    Act.STOP_WORKER: (
        "stop",
        acts.stop_worker,
        "End workers now; what they run is given back",
        """\
examples:
  shiftboss workers stop 7 --reason "its jobs hang"
  shiftboss workers stop 7 --reason "it drains for too long" --yes

Runs are cut off and their jobs given back, with no attempt lost.
""",
    ),
}
"""The word, the act, what it does and examples."""


def declare(commands: Commands) -> None:
    """Add the commands."""
    group = commands.group("workers", help="Look at workers, drain and stop them", epilog=GROUP_EXAMPLES)
    listing = group.add("list", list_workers, help="List the workers", epilog=LIST_EXAMPLES)
    take_person(listing)
    take_format(listing)
    for act, (word, _, text, examples) in VERBS.items():
        parser = group.add(word, partial(_act, act), help=text, epilog=examples)
        parser.add_argument("ids", type=identity, metavar="ID", nargs="+")
        take_reason(parser, needed=act in NEED_REASON)
        take_consent(parser)
        take_person(parser)
        take_format(parser)


def list_workers(given: argparse.Namespace) -> int:
    """Print the workers."""
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    rows = run(read.workers(authority=person.authority))
    if given.format == "json":
        print(as_json({"workers": [standing.worker(row) for row in rows]}))
        return 0
    heads = ("ID", "POOL", "HOST", "PID", "STATE", "BUSY", "HEARTBEAT", "LAG", "WORST", "MEMORY", "CPU", "ORDERED")
    cells = [
        (
            row.id,
            row.pool,
            row.host,
            row.pid,
            row.state if row.alive or row.state == "stopped" else "lost",
            f"{row.in_use} of {row.slots}",
            f"{row.heartbeat_age_seconds:.1f} s",
            f"{row.lag_ms:,} ms",
            f"{row.worst_lag_ms:,} ms",
            None if row.memory_kb is None else f"{row.memory_kb / 1024:,.0f} MB",
            None if row.cores is None else f"{row.cores:.2f}",
            row.ordered and f"{row.ordered} by {row.ordered_by}",
        )
        for row in rows
    ]
    right = frozenset({"ID", "PID", "BUSY", "HEARTBEAT", "LAG", "WORST", "MEMORY", "CPU"})
    print(table(heads, cells, right=right) if cells else "no workers")
    return 0


def _act(act: Act, given: argparse.Namespace) -> int:
    word, do, *_ = VERBS[act]
    check_reason(act, given)
    check_consent(act, given)
    open_record(given)
    person = permitted(act, given)
    ids = list(dict.fromkeys(given.ids))
    confirm(act, given, lambda: f"{_named(ids, person)}\n{word.capitalize()} {'it' if len(ids) == 1 else 'them'}?")
    outcomes: list[dict[str, Any]] = []
    for worker_id in ids:
        try:
            acted = worded(partial(do, worker_id, by=person, reason=given.reason))
        except (NoSuchWorker, OrderRefused, Busy) as problem:
            outcome = {"worker_id": str(worker_id), "done": False, "message": str(problem)}
        else:
            outcome = {
                "worker_id": str(worker_id),
                "done": True,
                "before": acted.before,
                "after": acted.after,
            }
        outcomes.append(outcome)
        if given.format == "text":
            print(_line(outcome), flush=True)
    refused = sum(1 for outcome in outcomes if not outcome["done"])
    if given.format == "json":
        done = len(outcomes) - refused
        print(as_json({"act": str(act), "done": done, "refused": refused, "workers": outcomes}))
    return 1 if refused else 0


def _named(ids: list[int], by: Person) -> str:
    """The workers that are meant, with what they have in hand."""
    known = {row.id: row for row in run(read.workers(authority=by.authority))}
    return "\n".join(
        f"worker {row.id} ({cell(row.pool)} on {cell(row.host)}, pid {row.pid}): {row.in_use} of {row.slots} busy"
        if (row := known.get(worker_id))
        else f"worker {worker_id}: not seen within the last hour"
        for worker_id in ids
    )


def _line(outcome: dict[str, Any]) -> str:
    worker = f"worker {outcome['worker_id']}:"
    if not outcome["done"]:
        return f"{worker} not done: {cell(outcome['message'])}"
    before, after = outcome["before"], outcome["after"]
    return f"{worker} {after} already" if before == after else f"{worker} {after} (was {before})"
