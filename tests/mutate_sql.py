"""Does a test miss each condition of the store's statements? `make mutate-sql`

Every condition of a guard in `store/sql` is left out, one at a time, and so are the row locks and their
`skip locked`; then the tests of the store that use the statement have to fail. What survives is listed, and the
exit code is 1. Two processes, each with a server of its own, share the mutants among them; they collect the tests
once and fork for each mutant, so that nothing is ever written to a file of the source.

    python -m tests.mutate_sql [--list] [STATEMENT…]

The same module is the pytest plugin that does this inside those processes.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shiftboss.queue import store
from shiftboss.queue.store import statement

SQL = Path(store.__path__[0]) / "sql"
TESTS = "tests/store"
PROCESSES = 2
MUTANT_SECONDS = 180.0
COMMON = 400
"""A statement that more tests use is one that they need to have jobs at all."""
ORDERS = "SHIFTBOSS_MUTATE_SQL"
"""Names a file: what a process is to do, as JSON."""

WRITES = re.compile(r"\b(insert|update|delete|pg_notify)\b")
DECIDERS = {
    "settled": "tells a repeated report from a late one",
    "number_events_now": "tells whose notes have to wait",
    "ended": "tells a needless heartbeat from a late one",
    "standing": "tells why an act left a job as it is",
    "holders": "decides who holds a key",
    "follow_ups": "chooses the follow-ups that are staged",
    "has_live": "decides whether a day may be dropped",
    "old_partitions": "chooses the days that are dropped",
    "prune_before": "decides which days are dropped",
}
"""Statements that write nothing themselves, but on whose answer the store acts. Other reads are left alone."""

NOT_FOR_GUARDS = ("test_plans.py",)
"""Tests that look at the statements' texts and plans: a guard has to be missed by what it does."""

_HOLDER = "select from shiftboss_job h where h.key = j.key and h.state <> 'quarantined' and not h.follow_up"
EXCLUDED: dict[tuple[str, str], str] = {
    ("*", "j.id = any (array(select id from outcome))"): "leads to the primary key; j.id = o.id says the same",
    ("*", "j.cancel_requested_at is not null"): "a statement changes a row once, and the other change comes first",
    ("*", "slot_id is not null"): "no slot has the number null",
    (
        "*",
        "s.id = any (array(select slot_id from leaving))",
    ): "leads to the primary key; s.id = l.slot_id says the same",
    ("*", "s.id = l.slot_id"): "a run has one slot, which job and fence name too",
    ("*", "j.id = any (array(select id from paired))"): "leads to the primary key; j.id = p.id says the same",
    (
        "*",
        "s.id = any (array(select slot_id from paired))",
    ): "leads to the primary key; s.id = c.slot_id says the same",
    (
        "claim_sequential",
        "id = any (array(select id from head))",
    ): "leads to the primary key; h.id = p.id says the same",
    ("claim_sequential", "j.id = p.id"): "there is one row, which the condition beside it names too",
    ("claim_sequential", "s.id = c.slot_id"): "there is one row, which the condition beside it names too",
    ("limit", "name = %(queue)s"): "leads to the primary key; the join names the queue too",
    (
        "settle_slots",
        "(q.concurrency is not null or exists (select from shiftboss_slot s where s.queue = q.name))",
    ): "a queue with neither a limit nor slots has nothing to be settled",
    ("settle_slots", "s.queue = q.name"): "a queue with neither a limit nor slots has nothing to be settled",
    (
        "settle_slots",
        "(%(queue)s::text is null or q.name = %(queue)s)",
    ): "the slots of other queues may be settled at any time",
    (
        "settle_slots",
        "id <> all (array(select id from surplus))",
    ): "a statement changes a row once, and the end of the row comes first",
    ("adopt_runs", "s.id = j.slot_id"): "leads to the primary key; job and fence say the same",
    (
        "adopt_runs",
        "j.id = any (array(select id from adopted))",
    ): "leads to the primary key; j.id = t.job_id says it too",
    ("apply_limits", "concurrency is not null"): "to have no limit changes nothing where there is none",
    ("reap", "s.fence = l.fence"): "a slot of another run of the job is settled right after it",
    ("reap", "sequential"): "what is not freed here is settled right after it",
    ("reap", "cancel_requested_at is not null"): "a statement changes a row once, and the loss comes first",
    ("cancel", "state <> 'running'"): "a statement changes a row once, and the request of its end comes first",
    ("*", "i.job_id is not null"): "leads to an index of backfills; no job is without a number",
    ("*", "e.job_id is not null"): "leads to an index of backfills; no job is without a number",
    ("*", "e.outcome is null"): "leads to an index; a job whose end was noted lives no more",
    (
        "backfill_note",
        "e.backfill_id = %(id)s",
    ): "leads to an index; the jobs of other backfills end none of this one",
    ("backfill", "i.item = any (array(select item from next))"): "leads to the primary key; i.item = next.item",
    (
        "backfill_note",
        "j.id = any (array( select e.job_id from shiftboss_backfill_item e where e.backfill_id = %(id)s and "
        "e.job_id is not null and e.outcome is null ))",
    ): "leads to the primary key; without it all live jobs are looked at",
    ("backfill_reinstated", "again"): "leads to an index; what is not wished stays so",
    ("backfill_reinstated", "backfill_id = %(id)s"): "leads to an index; a job is of one backfill",
    ("enqueue_follow_up", "h.state <> 'quarantined'"): "leads to the key's index; it is running",
    ("enqueue_follow_up", "not h.follow_up"): "leads to the key's index; a CHECK lets no follow-up run",
    ("enqueue_keyed", "f.follow_up"): "leads to its index; any other holder is a conflict of the same insert",
    ("enqueue_many", "f.key = n.key"): "what is left out is enqueued one by one, by enqueue_keyed",
    ("enqueue_many", "f.state <> 'quarantined'"): "what is left out is enqueued one by one, by enqueue_keyed",
    ("enqueue_many", "f.follow_up"): "what is left out is enqueued one by one, by enqueue_keyed",
    ("expire", "deadline is not null"): "leads to the deadlines' index; nothing is later than no deadline",
    ("follow_ups", "j.follow_up"): "stage_follow_up says the same of each",
    ("follow_ups", "j.due_at <= statement_timestamp()"): "stage_follow_up says the same of each",
    ("follow_ups", "holder.found is null"): "the unique index refuses it when stage_follow_up tries",
    (
        "reinstate",
        f"(j.key is null or not exists ( {_HOLDER}))",
    ): "the unique index refuses it, and the batch is halved until it is alone",
    ("reap", "state = 'running'"): "leads to the running jobs' index; a CHECK gives no other job an expiry",
    ("stop_silent_roll", "r.state = 'running'"): "said twice: to find it, and to hold where it has just ended",
    ("stop_silent_roll", "r.id = silent.id"): "one roll runs at a time",
    ("release_hold", "taken_up_at is null"): "leads to the index of open ones; what was taken up was released",
    (
        "take_back",
        "j.id = any (array(select id from returning_in))",
    ): "leads to the primary key; j.id = o.id says it too",
    ("stage_follow_up", "follow_up"): "one that is no follow-up any more, and due, is staged like any other",
    ("holders", "follow_up"): "leads to its index; each row says what it is",
    ("holders", "not follow_up"): "leads to its index; each row says what it is",
    ("follow_ups", "j.key is not null"): "leads to the follow-ups' index; a CHECK gives each one a key",
    ("follow_ups", "j.state <> 'quarantined'"): "leads to the follow-ups' index; stage_follow_up names the state",
}
"""Conditions that no test can miss, by statement (`*`: all) and text, and why."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One statement without one of its conditions."""

    statement: str
    left_out: str
    place: int
    sql: str

    @property
    def name(self) -> str:
        """How it is listed: statement, line of the expanded text, and what is left out."""
        return f"{self.statement}:{self.place}: {self.left_out}"


def masked(text: str) -> str:
    """The text with comments, strings and parameters blanked out, as long as it was."""
    return re.sub(r"--[^\n]*|'[^']*'|%\(\w+\)s", lambda match: " " * len(match[0]), text)


def plain(text: str) -> str:
    """The text in one line, without comments."""
    return " ".join(re.sub(r"--[^\n]*", "", text).split())


_TOKEN = re.compile(r"[()]|\w+")
_ENDS = {"order", "limit", "group", "returning", "for", "on", "union", "do", "having", "set"}
_INFERENCE = re.compile(r"on\s+conflict\s*\([^)]*\)\s*$")
_LOCK = re.compile(r"for (?:no key )?update(?: of \w+)?( skip locked)?")


def conditions(text: str) -> Iterator[tuple[int, int]]:
    """The spans of all conditions in all where clauses, those within conditions too.

    What follows `on conflict (…)` only names a partial index and is no condition.
    """
    bare = masked(text)
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(bare)]
    for index, (word, start, end) in enumerate(tokens):
        if word == "where" and not _INFERENCE.search(bare[:start]):
            yield from _conjuncts(bare, end, tokens[index + 1 :])


def _conjuncts(bare: str, begin: int, tokens: Sequence[tuple[str, int, int]]) -> Iterator[tuple[int, int]]:
    depth, end = 0, len(bare)
    cuts = [begin]
    for word, start, stop in tokens:
        depth += {"(": 1, ")": -1, "case": 1, "end": -1}.get(word, 0)
        if depth < 0 or (depth == 0 and word in _ENDS):
            end = start
            break
        if depth == 0 and word == "and":
            cuts += [start, stop]
    cuts.append(end)
    for left, right in zip(cuts[::2], cuts[1::2], strict=True):
        piece = bare[left:right]
        # Masked strings and parameters at the edges belong to the condition: only blank lines do not.
        yield left + len(piece) - len(piece.lstrip()), right


def mutants() -> list[Mutant]:
    """All mutants of all statements, but for those that are excluded."""
    found = []
    for file in sorted(SQL.glob("*.sql")):
        text = statement.sql_text(file.stem)
        if WRITES.search(masked(text)) or _LOCK.search(masked(text)) or file.stem in DECIDERS:
            found += list(_mutants_of(file.stem, text))
    return found


def _mutants_of(name: str, text: str) -> Iterator[Mutant]:
    for start, end in sorted(conditions(text)):
        # The masked text cannot tell where a condition ends that ends with a string; comments are left out.
        start, end = _trimmed(text, start, end)
        yield Mutant(name, plain(text[start:end]), _line(text, start), f"{text[:start]}true{text[end:]}")
    for match in _LOCK.finditer(masked(text)):
        start, end = match.span()
        yield Mutant(name, plain(match[0]), _line(text, start), text[:start] + text[end:])
        if match[1]:
            yield Mutant(name, "skip locked", _line(text, start), text[: match.start(1)] + text[end:])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without blanks and comments at its edges."""
    without = re.sub(r"--[^\n]*", lambda match: " " * len(match[0]), text)
    # What was masked at the beginning is looked for from the keyword before it.
    start = max(without.rfind(word, 0, start) + len(word) for word in ("where", "and") if word in without[:start])
    piece = without[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


def exclusion_of(mutant: Mutant) -> tuple[str, str] | None:
    """The exclusion that names this mutant."""
    for key in ((mutant.statement, mutant.left_out), ("*", mutant.left_out)):
        if key in EXCLUDED:
            return key
    return None


# What the driver does.


def main(argv: Sequence[str] | None = None) -> int:
    """Try every mutant; 0 where none survives, 1 where one does or an exclusion names nothing."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="only name the mutants")
    parser.add_argument("statements", nargs="*", help="only these statements")
    options = parser.parse_args(argv)
    everything = mutants()
    stale = set(EXCLUDED) - {exclusion_of(mutant) for mutant in everything}
    for name, text in sorted(stale):
        print(f"excluded, but there is no such condition any more: {name}: {text}")
    chosen = [
        mutant
        for mutant in everything
        if not exclusion_of(mutant) and (not options.statements or mutant.statement in options.statements)
    ]
    if options.list:
        print(*[mutant.name for mutant in chosen], sep="\n")
        return bool(stale)
    with tempfile.TemporaryDirectory(prefix="shiftboss-mutants-") as folder:
        began = time.monotonic()
        touched = _touched(Path(folder))
        print(f"{len(touched)} tests are green on the statements as they are, {time.monotonic() - began:.0f} s")
        survivors = _try(chosen, touched, Path(folder))
        print(f"\n{len(chosen)} mutants, {time.monotonic() - began:.0f} s, {len(survivors)} survive")
    for name, why in survivors:
        print(f"  {name}   ({why})")
    return bool(survivors or stale)


def _pytest(folder: Path, orders: dict[str, Any], *arguments: str) -> "subprocess.Popen[bytes]":
    handle, file = tempfile.mkstemp(dir=folder)
    os.close(handle)
    Path(file).write_text(json.dumps(orders))
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutate_sql", TESTS, *arguments]
    return subprocess.Popen(
        command, env=os.environ | {ORDERS: file}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _touched(folder: Path) -> dict[str, tuple[float, list[str]]]:
    """Of each test its seconds and the statements that it uses. Ends the program where a test fails."""
    run = _pytest(folder, {"touched": str(folder)}, "-n", str(PROCESSES))
    output, _ = run.communicate()
    if run.returncode:
        sys.exit(f"the tests have to be green first:\n{output.decode()[-4000:]}")
    touched: dict[str, tuple[float, list[str]]] = {}
    for file in folder.glob("touched-*.json"):
        touched |= json.loads(file.read_text())
    return touched


def _try(
    chosen: Sequence[Mutant], touched: dict[str, tuple[float, list[str]]], folder: Path
) -> list[tuple[str, str]]:
    """Share the mutants among processes, and tell of each; those that survive, and why."""
    results = folder / "results"
    results.touch()
    runs = [
        _pytest(
            folder,
            {
                "mutants": [[mutant.name, mutant.statement, mutant.sql] for mutant in chosen[share::PROCESSES]],
                "touched_by": touched,
                "results": str(results),
            },
            "--capture=no",
        )
        for share in range(min(PROCESSES, len(chosen)))
    ]
    survivors: list[tuple[str, str]] = []
    with results.open() as lines:
        done, line = 0, ""
        while done < len(chosen):
            line += lines.readline()
            if line.endswith("\n"):
                done += 1
                result, line = json.loads(line), ""
                if not result["killed"]:
                    survivors.append((result["name"], result["by"]))
                print(f"{done}/{len(chosen)} {'' if result['killed'] else 'SURVIVES '}{result['name']}")
                print(f"    {result['by']}, {result['seconds']:.1f} s", flush=True)
            elif any(run.poll() is not None for run in runs) and all(run.poll() is not None for run in runs):
                output = b"".join(run.communicate()[0] for run in runs)
                sys.exit(f"a process ended before its mutants were tried:\n{output.decode()[-4000:]}")
            else:
                time.sleep(0.1)
    for run in runs:
        run.communicate()
    return survivors


# What the plugin does.


class Recorder:
    """Writes down which statements each test uses, and how long it takes."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / f"touched-{os.getpid()}.json"
        self._used: set[str] = set()
        self._seconds = 0.0
        self._tests: dict[str, tuple[float, list[str]]] = {}
        original = statement.sql_text

        def text(name: str) -> str:
            self._used.add(name)
            return original(name)

        statement.sql_text = text  # type: ignore[assignment]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test."""
        self._used.clear()
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._tests[item.nodeid] = (time.monotonic() - began, sorted(self._used))

    def pytest_sessionfinish(self) -> None:
        """All tests of this process."""
        if self._tests:
            self._file.write_text(json.dumps(self._tests))


class Mutator:
    """Runs the tests of each mutant in a fork of the process that has collected them."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self._mutants: list[tuple[str, str, str]] = orders["mutants"]
        self._touched: dict[str, tuple[float, list[str]]] = orders["touched_by"]
        self._results = orders["results"]
        self._killers: dict[str, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All mutants of this process, in the place of all tests."""
        self._prepare(session)
        items = _spread([item for item in session.items if item.path.name not in NOT_FOR_GUARDS])
        for name, of, sql in self._mutants:
            began = time.monotonic()
            order = self._ordered([(place, item) for place, item in items if of in self._touched[item.nodeid][1]])
            killed, by = _in_a_fork(lambda order=order, of=of, sql=sql: _first_failure(session, order, of, sql))
            if killed:
                for name_of_killer in (by, _function(by)):
                    self._killers[name_of_killer] = self._killers.get(name_of_killer, 0) + 1
            with open(self._results, "a") as results:
                seconds = time.monotonic() - began
                results.write(json.dumps({"name": name, "killed": killed, "by": by, "seconds": seconds}) + "\n")
        return True

    def _ordered(self, tests: Sequence[tuple[int, pytest.Item]]) -> list[pytest.Item]:
        """First what has killed before, in whatever variant; then one test of each function, the quick ones first.

        Of a statement that nearly all tests use only those tests count that have killed themselves.
        """
        common = len(tests) > COMMON

        def key(found: tuple[int, pytest.Item]) -> tuple[int, int, int, float]:
            place, item = found
            by_function = 0 if common else self._killers.get(_function(item.nodeid), 0)
            return -self._killers.get(item.nodeid, 0), -by_function, place, self._touched[item.nodeid][0]

        return [item for _, item in sorted(tests, key=key)]

    def _prepare(self, session: pytest.Session) -> None:
        """One test, so that the database is there; then no connection, for a fork must not share any."""
        from django.db import connections

        first = session.items[0]
        following = next(item for item in session.items if item.path != first.path)
        first.config.hook.pytest_runtest_protocol(item=first, nextitem=following)
        connections.close_all()


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _spread(items: Sequence[pytest.Item]) -> list[tuple[int, pytest.Item]]:
    """Each test with its number among those of its function: one of each is tried first."""
    seen: dict[str, int] = {}
    placed = []
    for item in items:
        function = _function(item.nodeid)
        placed.append((seen.setdefault(function, 0), item))
        seen[function] += 1
    return placed


def _first_failure(session: pytest.Session, tests: Sequence[pytest.Item], of: str, sql: str) -> tuple[bool, str]:
    original = statement.sql_text
    statement.sql_text = lambda name: sql if name == of else original(name)  # type: ignore[assignment]
    failures: list[pytest.TestReport] = []

    class Failures:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failures.append(report)

    session.config.pluginmanager.register(Failures())
    for test, following in zip(tests, [*tests[1:], None], strict=True):
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=following or session.items[0])
        if failures:
            told = str(failures[0].longrepr)
            if re.search(r"\b(SyntaxError|UndefinedColumn|AmbiguousColumn)\b", told):
                return False, f"is no statement: {told[-300:]}"
            return True, failures[0].nodeid
    return False, f"{len(tests)} tests" if tests else "no test uses the statement"


def _in_a_fork(work: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
    """The answer of the work, done in a process of its own, which leaves nothing in this one."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            os.write(writable, json.dumps(work()).encode())
        except BaseException as error:
            os.write(writable, json.dumps([False, f"the tool failed: {error!r}"[:2000]]).encode())
        finally:
            os._exit(0)
    os.close(writable)
    deadline = time.monotonic() + MUTANT_SECONDS
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(readable)
            return True, "hangs"
        time.sleep(0.01)
    with open(readable, "rb") as pipe:
        killed, by = json.loads(pipe.read() or b'[false, "died"]')
    return killed, by


def pytest_configure(config: pytest.Config) -> None:
    """Do what the driver has ordered, if it has."""
    file = os.environ.get(ORDERS)
    orders = json.loads(Path(file).read_text()) if file else {}
    if "touched" in orders:
        config.pluginmanager.register(Recorder(orders["touched"]))
    if "mutants" in orders:
        config.pluginmanager.register(Mutator(orders))


if __name__ == "__main__":
    sys.exit(main())
