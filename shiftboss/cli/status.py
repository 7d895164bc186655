"""`shiftboss status`: what the queues hold and how the workers are."""

import argparse
from collections.abc import Iterator
from typing import Any

from shiftboss.cli.command import Commands, take_format
from shiftboss.cli.output import as_json, cell
from shiftboss.cli.project import open_record
from shiftboss.cli.queues import limit_words
from shiftboss.console import standing
from shiftboss.console.narrowing import looked_by
from shiftboss.permissions import Person

STOPPED_SHOWN_SECONDS = 600
"""How long a worker that has stopped stays in the words of `status`; its JSON tells of all."""

EXAMPLES = """\
examples:
  shiftboss status
  shiftboss status --format json | jq .states

the JSON object:
  states     {STATE: jobs} over all queues, every state
  capped     true where a count stops at a limit: there are at least that many
  ages_seconds   {PART: seconds}: how old what was seen is of "counts", the live jobs, "finished", "waits" and
             "leases", the available and running ones, "quarantine", "workers", "rates" and "minutes"; a part that
             nobody has ever looked at is missing
  queues     [{"queue", "states": {STATE: jobs}, "oldest_available_seconds", "live_workers",
             "paused": null or {"paused_at", "paused_by", "reason"},
             "limit": null or {"concurrency", "sequential", "set_by", "taken"}}]
  workers    [{"id", "pool", "host", "pid", "state", "alive", "queues", "slots", "in_use", "heartbeat_age_seconds",
             "heartbeat_seconds", "lease_seconds", "lag_ms", "worst_lag_ms", "losses", "memory_kb", "cpu_ms",
             "code_version", "started_at", "ordered", "ordered_by", "ordered_at", "tainted", "dropped",
             "resources": {NAME: {"made", "lent", "waiting"}}}]
  oldest_available_seconds   how long the longest-waiting available job has been due; null without one
  warnings   [TEXT]: no maintainer looks at the record; programs that crash in a loop and are held back; queues
             that are paused, or where jobs wait that no live worker serves
"""


def declare(commands: Commands) -> None:
    """Add the command."""
    asking = commands.add("status", status, help="Show the queues and the workers", epilog=EXAMPLES)
    take_format(asking)


def status(given: argparse.Namespace) -> int:
    """Print what the queues hold and how the workers are."""
    open_record(given)
    shell = Person.of_shell()
    report = standing.report(looked_by(shell), authority=shell.authority)
    print(as_json(report) if given.format == "json" else _as_text(report))
    return 0


def _as_text(report: dict[str, Any]) -> str:
    lines = [f"Jobs ({_counted(report)})"]
    width = max((len(queue["queue"]) for queue in report["queues"]), default=0)
    for queue in report["queues"]:
        held = "  ".join(f"{state} {jobs:,}" for state, jobs in queue["states"].items())
        age = queue["oldest_available_seconds"]
        waiting = "" if age is None else f"  (oldest available: {age:.1f} s)"
        state = "paused  " if queue["paused"] else ""
        limit = f"limit {limit_words(queue['limit'])}  " if (queue["limit"] or {}).get("concurrency") else ""
        lines.append(f"  {queue['queue']:<{width}}  {state}{limit}{held or 'no jobs'}{waiting}")
    if not report["queues"]:
        lines.append("  none yet")
    if report["warnings"]:
        lines += ["Warnings", *(f"  {cell(text)}" for text in report["warnings"])]
    lines.append("Workers")
    shown = [_worker_as_text(worker) for worker in report["workers"] if not _is_long_stopped(worker)]
    return "\n".join([*lines, *(shown or ["  none"])])


def _counted(report: dict[str, Any]) -> str:
    """How old the counts are, and where they stop."""
    age = report["ages_seconds"].get("counts")
    told = "not counted yet" if age is None else f"counted {age:.1f} s ago"
    return told + (", some are capped" if report["capped"] else "")


def _worker_as_text(worker: dict[str, Any]) -> str:
    state = worker["state"] if worker["alive"] or worker["state"] == "stopped" else "lost"
    line = (
        f"  {worker['pool']}  {worker['host']}:{worker['pid']}  {state}  "
        f"{worker['in_use']} of {worker['slots']} busy  heartbeat {worker['heartbeat_age_seconds']:.1f} s ago "
        f"(lease {worker['lease_seconds']:g} s)"
    )
    return "\n    ".join([line, *_below(worker)])


def _below(worker: dict[str, Any]) -> Iterator[str]:
    """What is ordered of it, what its jobs are lent, and what goes not as it should."""
    if worker["ordered"] and worker["state"] != "stopped":
        yield f"{worker['ordered']} ordered by {cell(worker['ordered_by'])}"
    for name, lent in sorted(worker["resources"].items()):
        yield f"{cell(name)}: {lent['lent']} of {lent['made']} lent, {lent['waiting']} waiting"
    if worker["alive"] and worker["tainted"]:
        yield _to_end(worker["tainted"])
    if worker["alive"] and worker["dropped"]:
        yield f"observations that reached no observer: {worker['dropped']:,}"


def _to_end(executors: int) -> str:
    if executors == 1:
        return "1 executor is to be ended: a handler did not end when it was asked to"
    return f"{executors} executors are to be ended: handlers did not end when they were asked to"


def _is_long_stopped(worker: dict[str, Any]) -> bool:
    age: float = worker["heartbeat_age_seconds"]
    return worker["state"] == "stopped" and age > STOPPED_SHOWN_SECONDS
