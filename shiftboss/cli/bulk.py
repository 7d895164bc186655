"""Acts on all jobs that match, in batches, with a count before and after.

`shiftboss jobs cancel --all`, and `reinstate` and `discard` with `--held-for`.
"""

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from shiftboss import acts
from shiftboss.acts import Swept
from shiftboss.cli.acting import DONE, check_consent, check_reason, confirm, permitted, worded
from shiftboss.cli.command import WrongUsage
from shiftboss.cli.output import as_json, cell
from shiftboss.cli.project import open_record
from shiftboss.permissions import Act
from shiftboss.queue.authority import System
from shiftboss.queue.states import FINAL, WAITING, State
from shiftboss.queue.store import audit, many, operate
from shiftboss.queue.store.many import Held
from shiftboss.queue.store.operate import Matching
from shiftboss.queue.store.statement import run as answer

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended, as shells have it."""

SYSTEM = System()

UNCAPPED = 2**62
"""More jobs than there can be."""

MATCHING = {Act.REINSTATE: acts.reinstate_matching, Act.DISCARD: acts.discard_matching}
"""The acts on all that are held for one reason."""


def is_meant(given: argparse.Namespace) -> bool:
    """Whether the words mean all that match, and not ids. Raises WrongUsage where they mean neither or both."""
    narrowing = [name for name in ("queue", "task", "state", "dry_run") if getattr(given, name)]
    if given.ids and (given.all or narrowing):
        option = "all" if given.all else narrowing[0].replace("_", "-")
        raise WrongUsage(
            f"give ids, or --all with what the jobs have in common: ids and --{option} do not go together"
        )
    if not given.ids and not given.all:
        raise WrongUsage("give the ids of jobs, or --all with --queue or --task")
    if given.all and not (given.queue or given.task):
        raise WrongUsage("--all of every queue is too much to be meant: add --queue or --task")
    if given.all and (ended := given.state and sorted(given.state & FINAL)):
        raise WrongUsage(f"{ended[0]} jobs have ended already: leave that state out")
    return bool(given.all)


def cancel(given: argparse.Namespace) -> int:
    """Cancel all that match; 0 where none was left, 1 where some were, 130 where Ctrl-C stopped it."""
    if not given.dry_run:
        check_reason(Act.CANCEL, given)
        check_consent(Act.CANCEL, given)
    open_record(given)
    person = permitted(Act.CANCEL, given)
    which = Matching(states=given.state or WAITING, queue=given.queue, task=given.task)
    # Refused here, before anything is counted, where it cannot be meant; nothing is done before it is iterated.
    reason = given.reason.strip() or "dry run"
    sweep = worded(lambda: acts.cancel_matching(which, by=person, reason=reason))
    n = answer(operate.count_matching(which, authority=person.authority))
    return _carry_out(Act.CANCEL, given, sweep, n, _described(which))


def means_the_held(given: argparse.Namespace) -> bool:
    """Whether the words mean all that are held for a reason, and not ids. Raises WrongUsage as `is_meant` does."""
    narrowing = [name for name in ("held_for", "task", "dry_run") if getattr(given, name)]
    if given.ids and narrowing:
        option = narrowing[0].replace("_", "-")
        raise WrongUsage(f"give ids, or --held-for with a reason: ids and --{option} do not go together")
    if not given.ids and not given.held_for:
        raise WrongUsage("give the ids of jobs, or --held-for with the reason for which they are held")
    return bool(given.held_for)


def on_the_held(act: Act, given: argparse.Namespace) -> int:
    """Reinstate or discard all that are held for a reason; the exit codes are those of `cancel`."""
    if not given.dry_run:
        check_reason(act, given)
        check_consent(act, given)
    open_record(given)
    person = permitted(act, given)
    which = Held(reason=given.held_for, task=given.task)
    reason = given.reason.strip() or ("dry run" if given.dry_run else "")
    sweep = worded(lambda: MATCHING[act](which, by=person, reason=reason))
    n = answer(many.held_count(which, authority=person.authority, cap=UNCAPPED)).jobs
    task = f", task {cell(which.task)}" if which.task else ""
    return _carry_out(act, given, sweep, n, f"held for {which.reason}{task}")


def _carry_out(act: Act, given: argparse.Namespace, sweep: Iterator[Swept], n: int, described: str) -> int:
    if given.dry_run or not n:
        text = f"{_jobs(n)} {_match(n)}: {described}"
        _tell(given, _summary(act, n, None, dry_run=given.dry_run), text)
        return 0
    confirm(act, given, lambda: f"{_jobs(n)} {_match(n)}: {described}\n{act.capitalize()} them?")
    swept, stopped = _sweep(act, sweep, n)
    changed = 0 if swept is None else answer(audit.total(swept.operation, authority=SYSTEM))
    summary = _summary(act, n, swept, changed=changed, interrupted=stopped)
    _tell(given, summary, _as_text(summary))
    if stopped:
        return INTERRUPTED
    return 1 if swept is not None and swept.left else 0


def _sweep(act: Act, sweep: Iterator[Swept], n: int) -> tuple[Swept | None, bool]:
    """Go on until the end or until Ctrl-C; how far it came, and whether it was stopped."""
    progress, swept = _Progress(n), None
    try:
        with _interrupts() as interrupts:
            for swept in sweep:
                progress.show(swept)
                if interrupts:
                    return swept, True
    except BaseException:
        progress.clear()
        if swept is not None:
            changed = swept.ended + swept.requested
            print(f"shiftboss: until then: {_as_text(_summary(act, n, swept, changed=changed))}", file=sys.stderr)
        raise
    finally:
        progress.clear()
    return swept, False


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The Ctrl-Cs that have come. The first one waits for the batch under way, a second one does not."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


class _Progress:
    """A line on the terminal that says how far it is."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._began = time.monotonic()
        self._width = 0 if sys.stderr.isatty() else None

    def show(self, swept: Swept) -> None:
        """Say how far it is, in place of what was said before."""
        if self._width is None:
            return
        past = swept.ended + swept.requested + swept.left
        rate = past / max(time.monotonic() - self._began, 0.001)
        text = f"{past:,} of {self._n:,} ({min(past / self._n, 1):.0%}), {rate:,.0f} jobs/s"
        print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def clear(self) -> None:
        """Leave the line empty."""
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


def _summary(
    act: Act, n: int, swept: Swept | None, *, changed: int = 0, interrupted: bool = False, dry_run: bool = False
) -> dict[str, Any]:
    return {
        "act": str(act),
        "dry_run": dry_run,
        "operation": None if swept is None else str(swept.operation),
        "matching": n,
        "changed": changed,
        "ended": swept.ended if swept else 0,
        "requested": swept.requested if swept else 0,
        "left": swept.left if swept else 0,
        "interrupted": interrupted,
    }


def _as_text(summary: dict[str, Any]) -> str:
    ended, requested = summary["ended"], summary["requested"]
    kinds = (
        f": {ended:,} ended, {requested:,} running and asked to end"
        if requested
        else f" {DONE[Act(summary['act'])]}"
    )
    parts = [f"{_jobs(summary['changed'])}{kinds}"]
    if summary["left"]:
        parts.append(f"{summary['left']:,} left: moved on, or in somebody else's hands")
    if summary["interrupted"]:
        parts.append(f"stopped by Ctrl-C; {summary['matching']:,} matched at first")
    return "; ".join(parts) + f" (operation {summary['operation']})"


def _tell(given: argparse.Namespace, summary: dict[str, Any], text: str) -> None:
    print(as_json(summary) if given.format == "json" else text)


def _jobs(n: int) -> str:
    return f"{n:,} job" if n == 1 else f"{n:,} jobs"


def _match(n: int) -> str:
    return "matches" if n == 1 else "match"


def _described(which: Matching) -> str:
    parts = [f"queue {cell(which.queue)}"] if which.queue else []
    parts += [f"task {cell(which.task)}"] if which.task else []
    return ", ".join([*parts, " or ".join(state for state in State if state in which.states)])
