"""`shiftboss jobs`: look at jobs, and act on them."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from shiftboss import acts
from shiftboss.cli import bulk
from shiftboss.cli.acting import act_on_each, check_consent, check_reason, confirm, permitted, person_of, worded
from shiftboss.cli.command import (
    Commands,
    Refused,
    WrongUsage,
    identity,
    take_consent,
    take_format,
    take_page,
    take_person,
    take_reason,
)
from shiftboss.cli.output import as_json, block, cell, moment, table
from shiftboss.cli.project import open_record
from shiftboss.console import evidence, listing, pretty, revealing, words
from shiftboss.console.filters import BadFilter
from shiftboss.console.listing import job as as_job
from shiftboss.console.sight import Seen, seen
from shiftboss.console.stored import as_object
from shiftboss.permissions import NEED_REASON, VIEW, Act, Person, require
from shiftboss.queue.contract import NoteKind
from shiftboss.queue.jobs import Kind, RetryKind, present_retry_kind, retry_kinds
from shiftboss.queue.payload import args_digest
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store import read
from shiftboss.queue.store.read import AttemptRow, EventRow, JobDetail
from shiftboss.queue.store.statement import run as answer

LIMIT = 50
RETRIES = {
    None: "",
    RetryKind.INFRASTRUCTURE: "  (infrastructure retry: worker lost)",
    RetryKind.FAILURE: "  (failure retry)",
}
SHOWN_BEFORE = 10
"""Jobs that are named when it is asked whether an act is meant."""

GROUP_EXAMPLES = """\
examples:
  shiftboss jobs list --state quarantined
  shiftboss jobs show 4711
  shiftboss jobs reinstate 4711 4712 --reason "mail server is back"
  shiftboss jobs cancel --all --queue mail --reason "wrong recipients" --dry-run

Each act is the one of the console and of the API: the same name, permission and entry of the audit.
"""

LIST_EXAMPLES = """\
examples:
  shiftboss jobs list
  shiftboss jobs list --state available,retryable --queue mail --limit 20
  shiftboss jobs list --state quarantined --before 4711
  shiftboss jobs list --query "error:timeout run>5m -queue:mail"
  shiftboss jobs list --state quarantined --format json | jq -r '.jobs[].id'

Newest first. Results are shown by `shiftboss jobs show` only, arguments by `shiftboss jobs reveal`.
A query looks at so many jobs and no more: a page may hold fewer than --limit and go on with --before all the
same.
"""

SHOW_EXAMPLES = """\
examples:
  shiftboss jobs show 4711
  shiftboss jobs show 4711 --format json | jq .attempts

Besides the fields of the job: `acts` that its state allows now, `attempts` that did not succeed, `events`.
"""

REVEAL_EXAMPLES = """\
examples:
  shiftboss jobs reveal 4711 --reason "which invoice was it"

The audit keeps who was told the arguments of which job.
"""

ACT_HELP = {
    Act.CANCEL: "End jobs: at once where they wait, else their handlers are asked to end",
    Act.EXPEDITE: "Make waiting jobs available before they are due",
    Act.RERUN: "Run finished jobs once more, as new jobs",
    Act.REINSTATE: "Let quarantined jobs run again",
    Act.DISCARD: "Give quarantined jobs up for good",
    Act.QUARANTINE: "Hold waiting jobs back until somebody reinstates them",
    Act.REPRIORITISE: "Give waiting jobs another priority",
    Act.RESCHEDULE: "Set when waiting jobs are due",
    Act.EDIT: "Run a finished or quarantined job with other arguments, as a new job",
}

ACT_EXAMPLES = {
    Act.CANCEL: """\
  shiftboss jobs cancel 4711 4712 --reason "wrong recipients"
  shiftboss jobs cancel 4711 --reason "wrong recipients" --yes --as kim
  shiftboss jobs cancel --all --queue mail --task shop.tasks.send --reason "wrong recipients" --dry-run
  shiftboss jobs cancel --all --queue mail --state available,retryable --reason "wrong recipients" --yes
""",
    Act.EXPEDITE: "  shiftboss jobs expedite 4711\n",
    Act.RERUN: """\
  shiftboss jobs rerun 4711 --reason "the printer had no paper"
  shiftboss jobs rerun 4711 --revision current --reason "its timeout was too short"
""",
    Act.REINSTATE: """\
  shiftboss jobs reinstate 4711 4712 --reason "mail server is back"
  shiftboss jobs reinstate --held-for failures_exhausted --reason "mail server is back" --dry-run
""",
    Act.DISCARD: """\
  shiftboss jobs discard 4711 --reason "customer is gone"
  shiftboss jobs discard --held-for unknown_task --reason "that task is no more" --yes
""",
    Act.QUARANTINE: '  shiftboss jobs quarantine 4711 --reason "look at it first"\n',
    Act.REPRIORITISE: "  shiftboss jobs reprioritise 4711 --priority 50\n",
    Act.RESCHEDULE: """\
  shiftboss jobs reschedule 4711 --due 2026-12-01T06:00:00+01:00
  shiftboss jobs reschedule 4711 --due "$(date -Is -d '+2 hours')"
""",
    Act.EDIT: """\
  shiftboss jobs edit 4711 --args '{"args": [7], "kwargs": {"to": "kim"}}' --reason "the address was wrong"
""",
}

ACT_NOTES = """
Each job is an act of its own, and a line of the output. Exit codes: 0 all done, 1 some refused (the line says
why), 2 wrong usage.
"""

CALLS = {
    Act.CANCEL: acts.cancel,
    Act.EXPEDITE: acts.expedite,
    Act.RERUN: acts.rerun,
    Act.REINSTATE: acts.reinstate,
    Act.DISCARD: acts.discard,
    Act.QUARANTINE: acts.quarantine,
    Act.REPRIORITISE: acts.reprioritise,
    Act.RESCHEDULE: acts.reschedule,
    Act.EDIT: acts.edit,
}

BULK = {Act.CANCEL, *bulk.MATCHING}
"""Acts that are done to ids, or to all jobs that match."""


def declare(commands: Commands) -> None:
    """Add the commands."""
    group = commands.group("jobs", help="Look at jobs, and act on them", epilog=GROUP_EXAMPLES)
    listing = group.add("list", list_jobs, help="List jobs, the newest first", epilog=LIST_EXAMPLES)
    listing.add_argument("--state", type=states, metavar="STATES", help="only these, with commas between them")
    listing.add_argument("--queue", metavar="QUEUE", help="only those of this queue")
    listing.add_argument("--query", metavar="QUERY", help="only those that it finds, as in the console's list")
    take_page(listing, limit=LIMIT)
    listing.add_argument("--after", type=identity, metavar="ID", help="the next ones with a greater id")
    take_person(listing)
    take_format(listing)
    showing = group.add("show", show, help="Show one job with all that is known of it", epilog=SHOW_EXAMPLES)
    showing.add_argument("id", type=identity, metavar="ID")
    take_person(showing)
    take_format(showing)
    telling = group.add("reveal", reveal, help="Print the arguments of a job", epilog=REVEAL_EXAMPLES)
    telling.add_argument("id", type=identity, metavar="ID")
    take_reason(telling, needed=False)
    take_person(telling)
    for act in CALLS:
        _declare_act(group, act)


def _declare_act(group: Commands, act: Act) -> None:
    epilog = f"examples:\n{ACT_EXAMPLES[act]}{ACT_NOTES}"
    parser = group.add(str(act), partial(_act, act), help=ACT_HELP[act], epilog=epilog)
    parser.add_argument("ids", type=identity, metavar="ID", nargs="*" if act in BULK else "+")
    if act is Act.RERUN:
        parser.add_argument(
            "--revision",
            choices=[str(revision) for revision in acts.Revision],
            default=str(acts.Revision.SAME),
            help="by the job's own configuration of the task, or by what the code says now (default: same)",
        )
    if act is Act.REPRIORITISE:
        parser.add_argument(
            "--priority", type=int, metavar="N", required=True, help="from -100 to 100; the highest runs first"
        )
    if act is Act.EDIT:
        parser.add_argument("--args", metavar="JSON", required=True, help='{"args": […], "kwargs": {…}}')
    if act is Act.RESCHEDULE:
        parser.add_argument(
            "--due", type=_time, metavar="TIME", required=True, help="ISO 8601 with an offset from UTC, or Z"
        )
    if act is Act.CANCEL:
        parser.add_argument("--all", action="store_true", help="all jobs that wait and match, instead of ids")
        parser.add_argument("--queue", metavar="QUEUE", help="with --all: those of this queue")
        parser.add_argument("--task", metavar="TASK", help="with --all: those of this task")
        parser.add_argument(
            "--state", type=states, metavar="STATES", help="with --all: those in these states (default: that wait)"
        )
        parser.add_argument("--dry-run", action="store_true", help="with --all: count them, and do nothing")
    if act in bulk.MATCHING:
        parser.add_argument(
            "--held-for",
            type=QuarantineReason,
            choices=list(QuarantineReason),
            metavar="REASON",
            help=f"all that are quarantined for this reason, instead of ids: {', '.join(QuarantineReason)}",
        )
        parser.add_argument("--task", metavar="TASK", help="with --held-for: those of this task")
        parser.add_argument("--dry-run", action="store_true", help="with --held-for: count them, and do nothing")
    take_reason(parser, needed=act in NEED_REASON)
    take_consent(parser)
    take_person(parser)
    take_format(parser)


def list_jobs(given: argparse.Namespace) -> int:
    """Print jobs, the newest first."""
    if given.before is not None and given.after is not None:
        raise WrongUsage("give --before or --after, not both")
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    which = {"queue": given.queue, "before": given.before, "after": given.after, "limit": given.limit}
    try:
        if given.query is not None:
            revealing.search(given.query, by=person)
        page = listing.jobs(given.state or State, text=given.query or "", by=person, **which)
    except BadFilter as problem:
        raise WrongUsage(str(problem)) from None
    if given.format == "json":
        print(as_json(page.as_object()))
        return 0
    heads = (
        "ID",
        "STATE",
        "QUEUE",
        "TASK",
        "PRIORITY",
        "ENQUEUED (UTC)",
        "DUE (UTC)",
        "FAILURES",
        "KIND",
        "ERROR",
    )
    cells = [
        (
            row.id,
            row.state,
            row.queue,
            row.task,
            row.priority,
            row.enqueued_at,
            row.due_at,
            f"{row.failures}/{row.failure_limit}",
            None if row.kind is Kind.JOB else row.kind,
            row.error_type,
        )
        for row in page.rows
    ]
    print(table(heads, cells, right=frozenset({"ID", "PRIORITY", "FAILURES"})) if cells else _none(page))
    if page.older and sys.stderr.isatty():
        print(f"older ones: --before {page.older}", file=sys.stderr)
    return 0


def _none(page: listing.Page) -> str:
    """That there is none; or that there was none so far, and from where to go on."""
    for option, further in (("before", page.older), ("after", page.newer)):
        if further is not None:
            return f"no jobs among those that were looked at: go on with --{option} {further}"
    return "no jobs"


def show(given: argparse.Namespace) -> int:
    """Print one job with its attempts, its events and the acts that its state allows."""
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    job = answer(read.job(authority=person.authority, job_id=given.id))
    if job is None:
        raise Refused(f"there is no job {given.id}")
    attempts = answer(read.attempts(authority=person.authority, job_id=given.id))
    events = answer(read.events(authority=person.authority, job_id=given.id))
    if given.format == "json":
        print(as_json(as_job(job, attempts, events, by=person)))
    else:
        print(_as_text(job, attempts, events, by=person))
    return 0


def reveal(given: argparse.Namespace) -> int:
    """Print the arguments of one job, digit by digit as they are stored."""
    open_record(given)
    person = permitted(Act.REVEAL, given)
    worded(lambda: acts.reveal(given.id, by=person, reason=given.reason))
    job = answer(read.job(authority=person.authority, job_id=given.id))
    if job is None:
        raise Refused(f"there is no job {given.id}")
    print(pretty.indented(job.args))
    return 0


def states(text: str) -> frozenset[State]:
    """The states in a text with commas between them, as an option's type."""
    try:
        return frozenset(State(word.strip()) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: the states are {', '.join(State)}") from None


def _act(act: Act, given: argparse.Namespace) -> int:
    if act is Act.CANCEL and bulk.is_meant(given):
        return bulk.cancel(given)
    if act in bulk.MATCHING and bulk.means_the_held(given):
        return bulk.on_the_held(act, given)
    check_reason(act, given)
    check_consent(act, given)
    open_record(given)
    person = permitted(act, given)
    ids = list(dict.fromkeys(given.ids))
    confirm(act, given, lambda: _named(act, ids, person))
    more, wish = _wish(act, given)
    do: Any = CALLS[act]
    return act_on_each(act, ids, lambda id: do(id, by=person, reason=given.reason, **more), given=given, wish=wish)


def _wish(act: Act, given: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """What an act wants to know beside the reason, for the act and for people."""
    match act:
        case Act.RERUN:
            return {"revision": given.revision}, ""
        case Act.REPRIORITISE:
            return {"priority": given.priority}, str(given.priority)
        case Act.RESCHEDULE:
            return {"due_at": given.due}, moment(given.due)
        case Act.EDIT:
            return {"args": given.args}, ""
    return {}, ""


def _named(act: Act, ids: Sequence[int], by: Person) -> str:
    """The jobs that are about to be changed, as they are now, and the question."""
    found = [(id, answer(read.job(authority=by.authority, job_id=id))) for id in ids[:SHOWN_BEFORE]]
    rows = [(id, job.state, job.queue, job.task) if job else (id, "no such job", "", "") for id, job in found]
    more = f"\n… and {len(ids) - SHOWN_BEFORE} more" if len(ids) > SHOWN_BEFORE else ""
    shown = table(("ID", "STATE", "QUEUE", "TASK"), rows, right=frozenset({"ID"}))
    number = f"{len(ids)} jobs" if len(ids) > 1 else "this job"
    return f"{shown}{more}\n{act.capitalize()} {number}?"


def _as_text(job: JobDetail, attempts: Sequence[AttemptRow], events: Sequence[EventRow], *, by: Person) -> str:
    told = as_object(job) | {
        "args": None,
        "args_sha256": args_digest(job.args),
        "kind": job.kind,
        "retry_kind": present_retry_kind(job, attempts),
    }
    fields = {name: value for name, value in told.items() if value not in (None, [], "{}", "")}
    width = max(map(len, fields))
    parts = [
        "\n".join(f"{name:<{width}}  {cell(_said(value))}" for name, value in fields.items()),
        f"{'acts':<{width}}  {', '.join(acts.legal(job.state))}",
    ]
    digest = args_digest(job.args)
    for one, kind in zip(seen(attempts, by=by), retry_kinds(attempts), strict=False):
        attempt = one.row
        error = f": {attempt.error_type or attempt.error_code}" if attempt.error_type or attempt.error_code else ""
        message = f": {attempt.error_message}" if attempt.error_message else ""
        run_ms = "" if attempt.run_ms is None else f", {attempt.run_ms} ms"
        parts.append(
            f"\nattempt {attempt.fence}  {cell(attempt.ended_at)}  "
            f"{cell(attempt.outcome + error + message + run_ms)}{RETRIES[kind]}"
        )
        parts.extend(_evidence(one, digest))
        if attempt.traceback:
            parts.append(block(attempt.traceback))
    if events:
        rows = [(event.seq, event.at, *_told(event)) for event in events]
        parts.append("\n" + table(("EVENT", "AT (UTC)", "KIND", "FENCE", "DATA"), rows))
    return "\n".join(parts)


def _evidence(one: Seen, args_sha256: str) -> list[str]:
    """What the attempt has kept, a line for each fact, and then what its handler has written last."""
    kept = evidence.read(one.row.evidence, args_sha256=args_sha256)
    facts = [
        (fact.name, f"{fact.exact or fact.value}{f' ({fact.note})' if fact.note else ''}") for fact in kept.facts
    ]
    facts += [("Checkpoint", text) for text in (kept.checkpoint,) if text]
    facts += [("Evidence", text) for text in (kept.rest,) if text and text != "{}"]
    if one.withheld:
        parts = ", ".join(words.spoken(words.PARTS, name) for name in one.withheld)
        facts.append(("Not shown", f"{parts}: it needs the permission {one.permission}"))
    width = max((len(name) for name, _ in facts), default=0)
    lines = [f"  {name:<{width}}  {cell(value)}" for name, value in facts]
    if kept.output:
        lines += ["  Last output", *(f"  | {line}" for line in block(kept.output).splitlines())]
    return lines


def _told(event: EventRow) -> tuple[str, int | None, str]:
    """Its kind, fence and data; an event that the handler has told has the name that it was given there."""
    if event.kind != NoteKind.EVENT:
        return event.kind, event.fence, event.data
    told = json.loads(event.data)
    return f"event {told.get('name')}", event.fence, json.dumps(told.get("data"), ensure_ascii=False)


def _said(value: Any) -> Any:
    match value:
        case list():
            return ", ".join(map(str, value))
        case datetime():
            return moment(value)
    return value


def _time(text: str) -> datetime:
    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        if time.utcoffset() is not None:
            return time
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a moment: give it as in 2026-12-01T06:00:00+01:00, with its offset from UTC or Z"
    )
