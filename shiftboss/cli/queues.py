"""`shiftboss queues`: look at queues, pause, resume and limit them."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from shiftboss import acts
from shiftboss.acts import Acted, LimitWord
from shiftboss.cli.acting import check_reason, permitted, person_of, worded
from shiftboss.cli.command import Commands, take_format, take_person, take_reason
from shiftboss.cli.output import as_json, cell, moment, table
from shiftboss.cli.project import open_record
from shiftboss.console import standing
from shiftboss.console.narrowing import looked_by
from shiftboss.permissions import NEED_REASON, VIEW, Act, Person, require
from shiftboss.queue.states import LIVE, State

GROUP_EXAMPLES = """\
examples:
  shiftboss queues list
  shiftboss queues pause mail --reason "mail server is down"
  shiftboss queues resume mail
  shiftboss queues limit mail 3 --reason "the mail server takes no more"

Each act is the one of the console and of the API: the same name, permission and entry of the audit.
"""

LIST_EXAMPLES = """\
examples:
  shiftboss queues list
  shiftboss queues list --format json | jq -r '.queues[] | select(.paused).queue'

Queues that have jobs or live workers, or are paused or limited. Finished jobs are counted in the JSON only.
"""

PAUSE_EXAMPLES = """\
examples:
  shiftboss queues pause mail --reason "mail server is down"
  shiftboss queues pause mail reports --reason "maintenance of the database"

Jobs of a paused queue are taken in and wait; those that run already go on to their end. A queue that is paused
already keeps the reason it has.
"""

RESUME_EXAMPLES = """\
examples:
  shiftboss queues resume mail
  shiftboss queues resume mail reports --reason "maintenance is over"
"""

LIMIT_EXAMPLES = """\
examples:
  shiftboss queues limit mail 3 --reason "the mail server takes no more"
  shiftboss queues limit ledger --sequential --reason "entries have to stand in order"
  shiftboss queues limit mail --none --reason "it is a bigger server now"
  shiftboss queues limit mail --reset --reason "the settings are right again"

At most so many jobs of the queue run at once over all workers, from now on and whatever the settings say, until it
is reset to them. Those that run already go on and count. In a sequential queue a job that waits for its next run
holds the line.
"""


def declare(commands: Commands) -> None:
    """Add the commands."""
    group = commands.group("queues", help="Look at queues, pause, resume and limit them", epilog=GROUP_EXAMPLES)
    listing = group.add("list", list_queues, help="List the queues", epilog=LIST_EXAMPLES)
    take_person(listing)
    take_format(listing)
    pausing = group.add("pause", pause, help="Stop queues from being worked on", epilog=PAUSE_EXAMPLES)
    resuming = group.add("resume", resume, help="Let queues be worked on again", epilog=RESUME_EXAMPLES)
    for act, parser in ((Act.PAUSE, pausing), (Act.RESUME, resuming)):
        parser.add_argument("queues", metavar="QUEUE", nargs="+")
        take_reason(parser, needed=act in NEED_REASON)
        take_person(parser)
        take_format(parser)
    limiting = group.add("limit", limit, help="Say how many jobs of a queue run at once", epilog=LIMIT_EXAMPLES)
    limiting.add_argument("queue", metavar="QUEUE")
    which = limiting.add_mutually_exclusive_group(required=True)
    which.add_argument("limit", metavar="N", nargs="?", type=int, help="at most so many jobs at once")
    for option, word, text in (
        ("--sequential", LimitWord.SEQUENTIAL, "one job at a time in strict order"),
        ("--none", LimitWord.NONE, "as many as the workers can"),
        ("--reset", LimitWord.SETTINGS, "what the settings say"),
    ):
        which.add_argument(option, dest="limit", action="store_const", const=word, help=text)
    take_reason(limiting, needed=True)
    take_person(limiting)
    take_format(limiting)


def list_queues(given: argparse.Namespace) -> int:
    """Print the queues with what they hold."""
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    report = standing.queues(looked_by(person), authority=person.authority)
    if given.format == "json":
        print(as_json(report))
        return 0
    listed = report["queues"]
    live = [state for state in State if state in LIVE]
    heads = ("QUEUE", *(state.upper() for state in live), "WORKERS", "LIMIT", "PAUSED")
    rows = [
        (
            queue["queue"],
            *(f"{queue['states'].get(state, 0):,}" for state in live),
            queue["live_workers"],
            limit_words(queue["limit"]),
            paused_words(queue["paused"]) if queue["paused"] else "-",
        )
        for queue in listed
    ]
    print(table(heads, rows, right=frozenset(heads[1:-2])) if rows else "no queues")
    return 0


def pause(given: argparse.Namespace) -> int:
    """Pause queues."""
    check_reason(Act.PAUSE, given)
    return _act_on_each(Act.PAUSE, acts.pause, given)


def resume(given: argparse.Namespace) -> int:
    """Resume queues."""
    return _act_on_each(Act.RESUME, acts.resume, given)


def limit(given: argparse.Namespace) -> int:
    """Limit a queue."""
    check_reason(Act.LIMIT, given)
    open_record(given)
    person = permitted(Act.LIMIT, given)
    acted = worded(partial(acts.limit, given.queue, by=person, limit=given.limit, reason=given.reason))
    if given.format == "json":
        outcome = {"queue": acted.queue, "before": acted.before, "after": acted.after}
        print(as_json({"act": str(Act.LIMIT), "queues": [outcome]}))
    else:
        print(f"queue {cell(given.queue)}: limit {_said(acted, is_reset=given.limit is LimitWord.SETTINGS)}")
    _warn_of_unknown([given.queue], person)
    return 0


def _said(acted: Acted, *, is_reset: bool) -> str:
    if is_reset:
        was = "" if acted.before == acted.after else f" (was {acted.before})"
        return f"{acted.after}, as the settings say{was}"
    return f"{acted.after} already" if acted.before == acted.after else f"{acted.after} (was {acted.before})"


def limit_words(limit: dict[str, Any] | None) -> str:
    """How many of its slots are taken, and whether it is sequential; `lifted`: none, whatever the settings say."""
    if limit is None:
        return "-"
    if limit["concurrency"] is None:
        return "lifted"
    return f"{limit['taken']} of {limit['concurrency']}" + (" sequential" if limit["sequential"] else "")


def paused_words(paused: dict[str, Any]) -> str:
    """Since when, by whom and why."""
    return cell(f"since {moment(paused['paused_at'])} by {paused['paused_by']}: {paused['reason']}")


def _act_on_each(act: Act, do: Callable[..., Acted], given: argparse.Namespace) -> int:
    open_record(given)
    person = permitted(act, given)
    outcomes = []
    for queue in dict.fromkeys(given.queues):
        acted = worded(partial(do, queue, by=person, reason=given.reason))
        outcomes.append({"queue": acted.queue, "before": acted.before, "after": acted.after})
        if given.format == "text":
            already = " already" if acted.before == acted.after else ""
            print(f"queue {cell(queue)}: {acted.after}{already}", flush=True)
    if given.format == "json":
        print(as_json({"act": str(act), "queues": outcomes}))
    if act is Act.PAUSE:
        _warn_of_unknown([outcome["queue"] for outcome in outcomes], person)
    return 0


def _warn_of_unknown(names: Sequence[str | None], by: Person) -> None:
    """A name that nothing uses is likely mistyped; it is paused all the same, for the jobs to come."""
    report = standing.queues(looked_by(by), authority=by.authority)
    known = {queue["queue"] for queue in report["queues"] if queue["states"] or queue["live_workers"]}
    for name in names:
        if name not in known:
            doubt = f"shiftboss: queue {cell(name)} has no job and no live worker: is it the right name?"
            print(doubt, file=sys.stderr)
