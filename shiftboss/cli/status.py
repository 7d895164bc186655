"""`shiftboss status`: what the queues hold and how the workers are."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from shiftboss.cli.command import Commands, Refused
from shiftboss.cli.project import anything_to_ask, set_up
from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.schema import check_schema
from shiftboss.queue.store.statement import run as answer
from shiftboss.supervisor_conf import installation, readiness

STOPPED_SHOWN_SECONDS = 600
"""How long a worker that has stopped stays in the words of `status`; its JSON tells of all."""

EXAMPLES = """\
examples:
  shiftboss status
  shiftboss status --format json | jq .states

the JSON object:
  states     {STATE: jobs} over all queues, every state
  capped     true where a count of finished jobs stops at a limit: there are at least that many
  queues     [{"queue", "states": {STATE: jobs}, "oldest_available_seconds"}]
  workers    [{"id", "pool", "host", "pid", "state", "alive", "slots", "in_use", "heartbeat_age_seconds",
             "heartbeat_seconds", "lease_seconds", "lag_ms", "worst_lag_ms"}]
  oldest_available_seconds   how long the longest-waiting available job has been due; null without one
"""


def declare(commands: Commands) -> None:
    """Add the command."""
    asking = commands.add("status", status, help="Show the queues and the workers", epilog=EXAMPLES)
    asking.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def status(given: argparse.Namespace) -> int:
    """Print what the queues hold and how the workers are."""
    if not anything_to_ask(given):
        home = installation.home_folder()
        raise Refused(
            f"there is no installation in {home}: run `shiftboss up` here, go to the folder where it runs, name "
            "its home with SHIFTBOSS_HOME, or name your project with --settings and --pythonpath"
        )
    set_up(given)
    readiness.check_server()
    answer(check_schema())
    counts = answer(read.counts(authority=System()))
    workers = answer(read.workers(authority=System()))
    report = _report(counts, workers)
    print(json.dumps(report, indent=2) if given.format == "json" else _as_text(report))
    return 0


def _report(counts: Sequence[Any], workers: Sequence[Any]) -> dict[str, Any]:
    """The object that EXAMPLES describes."""
    totals: Counter[str] = Counter()
    queues: dict[str, dict[str, Any]] = {}
    for count in counts:
        queue = queues.setdefault(
            count.queue, {"queue": count.queue, "states": {}, "oldest_available_seconds": None}
        )
        queue["states"][str(count.state)] = count.jobs
        totals[str(count.state)] += count.jobs
        if count.state is State.AVAILABLE:
            queue["oldest_available_seconds"] = count.oldest_seconds
    ages = [queue["oldest_available_seconds"] for queue in queues.values()]
    return {
        "states": {str(state): totals[str(state)] for state in State},
        "capped": any(count.capped for count in counts),
        "queues": [queues[name] for name in sorted(queues)],
        "workers": [_worker(worker) for worker in workers],
        "oldest_available_seconds": max((age for age in ages if age is not None), default=None),
    }


def _worker(worker: Any) -> dict[str, Any]:
    names = "id pool host pid state alive slots in_use heartbeat_age_seconds heartbeat_seconds lease_seconds "
    return {name: getattr(worker, name) for name in (names + "lag_ms worst_lag_ms").split()}


def _as_text(report: dict[str, Any]) -> str:
    lines = ["Jobs" + (" (counts of finished jobs are capped)" if report["capped"] else "")]
    width = max((len(queue["queue"]) for queue in report["queues"]), default=0)
    for queue in report["queues"]:
        held = "  ".join(f"{state} {jobs:,}" for state, jobs in queue["states"].items())
        age = queue["oldest_available_seconds"]
        waiting = "" if age is None else f"  (oldest available: {age:.1f} s)"
        lines.append(f"  {queue['queue']:<{width}}  {held}{waiting}")
    if not report["queues"]:
        lines.append("  none yet")
    lines.append("Workers")
    shown = [_worker_as_text(worker) for worker in report["workers"] if not _is_long_stopped(worker)]
    return "\n".join([*lines, *(shown or ["  none"])])


def _worker_as_text(worker: dict[str, Any]) -> str:
    state = worker["state"] if worker["alive"] or worker["state"] == "stopped" else "lost"
    return (
        f"  {worker['pool']}  {worker['host']}:{worker['pid']}  {state}  "
        f"{worker['in_use']} of {worker['slots']} busy  heartbeat {worker['heartbeat_age_seconds']:.1f} s ago "
        f"(lease {worker['lease_seconds']:g} s)"
    )


def _is_long_stopped(worker: dict[str, Any]) -> bool:
    age: float = worker["heartbeat_age_seconds"]
    return worker["state"] == "stopped" and age > STOPPED_SHOWN_SECONDS
