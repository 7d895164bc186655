"""`shiftboss backfills`: look at backfills, pause, resume, retry and cancel them."""

import argparse
from collections.abc import Callable
from functools import partial

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.cli.acting import check_consent, check_reason, confirm, permitted, person_of, worded
from shiftboss.cli.command import (
    Commands,
    Refused,
    identity,
    take_consent,
    take_format,
    take_page,
    take_person,
    take_reason,
)
from shiftboss.cli.output import as_json, cell, table
from shiftboss.cli.project import open_record
from shiftboss.console import listing
from shiftboss.permissions import NEED_REASON, VIEW, Act, Person, require
from shiftboss.queue.store import backfill as store
from shiftboss.queue.store.backfill import PAGE, BackfillRow
from shiftboss.queue.store.statement import run

COUNTS = ("items", "waiting", "live", "quarantined", "completed", "cancelled", "discarded")

GROUP_EXAMPLES = """\
examples:
  shiftboss backfills list
  shiftboss backfills show 7
  shiftboss backfills pause 7 --reason "the shop is busy"
  shiftboss backfills retry 7

A backfill is begun by code, with shiftboss.backfill(…). Each act is the one of the console and of the API: the
same name, permission and entry of the audit.
"""

LIST_EXAMPLES = """\
examples:
  shiftboss backfills list
  shiftboss backfills list --format json | jq '.backfills[] | select(.state == "running")'

Newest first. Each item is counted once: it waits for a job, has a live one, or that job has come to this end.
"""

SHOW_EXAMPLES = """\
examples:
  shiftboss backfills show 7
  shiftboss backfills show 7 --format json | jq .completed
"""

VERBS: dict[Act, tuple[str, Callable[..., Acted], str, str]] = {
    Act.PAUSE_BACKFILL: (
        "pause",
        acts.pause_backfill,
        "Enqueue no more items of a backfill; jobs that it has go on",
        '  shiftboss backfills pause 7 --reason "the shop is busy"\n',
    ),
    Act.RESUME_BACKFILL: (
        "resume",
        acts.resume_backfill,
        "Let a backfill go on",
        "  shiftboss backfills resume 7\n",
    ),
    Act.RETRY_BACKFILL: (
        "retry",
        acts.retry_backfill,
        "Run again what failed of a backfill, and nothing else",
        '  shiftboss backfills retry 7 --reason "the mail server is back"\n',
    ),
    Act.CANCEL_BACKFILL: (
        "cancel",
        acts.cancel_backfill,
        "End a backfill: its items get no jobs any more, and its jobs are cancelled",
        '  shiftboss backfills cancel 7 --reason "wrong orders" --yes\n',
    ),
}
"""The word, the act, what it does and an example."""


def declare(commands: Commands) -> None:
    """Add the commands."""
    group = commands.group(
        "backfills", help="Look at backfills, pause, resume, retry and cancel them", epilog=GROUP_EXAMPLES
    )
    listed = group.add("list", list_backfills, help="List backfills, the newest first", epilog=LIST_EXAMPLES)
    take_page(listed, limit=PAGE)
    take_person(listed)
    take_format(listed)
    showing = group.add("show", show, help="Show how far a backfill is", epilog=SHOW_EXAMPLES)
    showing.add_argument("id", type=identity, metavar="ID")
    take_person(showing)
    take_format(showing)
    for act, (word, _, text, example) in VERBS.items():
        parser = group.add(word, partial(_act, act), help=text, epilog=f"examples:\n{example}")
        parser.add_argument("id", type=identity, metavar="ID")
        take_reason(parser, needed=act in NEED_REASON)
        take_consent(parser)
        take_person(parser)
        take_format(parser)


def list_backfills(given: argparse.Namespace) -> int:
    """Print backfills, the newest first."""
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    rows = run(store.backfills(authority=person.authority, before_id=given.before, limit=given.limit))
    if given.format == "json":
        print(as_json({"backfills": [listing.backfill(row) for row in rows]}))
        return 0
    heads = ("ID", "NAME", "STATE", "TASK", *(name.upper() for name in COUNTS))
    cells = [
        (row.id, row.name, row.state, row.task, *(f"{getattr(row, name):,}" for name in COUNTS)) for row in rows
    ]
    print(table(heads, cells, right=frozenset({"ID", *heads[4:]})) if cells else "no backfills")
    return 0


def show(given: argparse.Namespace) -> int:
    """Print one backfill."""
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    row = _found(given.id, person)
    told = listing.backfill(row)
    if given.format == "json":
        print(as_json(told))
        return 0
    width = max(map(len, told))
    print("\n".join(f"{name:<{width}}  {cell(value)}" for name, value in told.items()))
    return 0


def _found(backfill_id: int, by: Person) -> BackfillRow:
    row = run(store.backfill(backfill_id, authority=by.authority))
    if row is None:
        raise Refused(f"there is no backfill {backfill_id}")
    return row


def _act(act: Act, given: argparse.Namespace) -> int:
    word, do, *_ = VERBS[act]
    check_reason(act, given)
    check_consent(act, given)
    open_record(given)
    person = permitted(act, given)
    confirm(act, given, lambda: _question(word, _found(given.id, person)))
    acted = worded(partial(do, given.id, by=person, reason=given.reason))
    row = _found(given.id, person)
    if given.format == "json":
        print(as_json({"act": str(act), "items": acted.items, "backfill": listing.backfill(row)}))
    elif acted.items is None:
        already = " already" if acted.before == acted.after else ""
        print(f"backfill {row.id} ({cell(row.name)}): {acted.after}{already}")
    else:
        items = "1 item" if acted.items == 1 else f"{acted.items:,} items"
        done = "cancelled or asked to end"
        if act is Act.RETRY_BACKFILL:
            done = "is to run again" if acted.items == 1 else "are to run again"
            done += "; it is paused: resume it" if acted.items and row.paused_at else ""
        print(f"backfill {row.id} ({cell(row.name)}): {items} {done}")
    return 0


def _question(word: str, row: BackfillRow) -> str:
    jobs = row.live + row.quarantined
    shown = f"backfill {row.id} ({cell(row.name)}): {row.waiting:,} items wait, {jobs:,} have jobs"
    return f"{shown}\n{word.capitalize()} it?"
