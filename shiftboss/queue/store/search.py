"""Jobs that are searched for: by an index where one serves what is asked, else by a walk that is bounded.

A walk looks at windows of rows from the newest down, and ends with the rows that are wanted, after `ROWS` rows or
`SECONDS`, whichever comes first; it tells how far it came. What is asked becomes conditions out of the fixed texts
below; every value travels as a parameter.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from time import monotonic
from typing import Any

from shiftboss.queue.authority import Authority, reach_of
from shiftboss.queue.jobs import JobRow
from shiftboss.queue.states import FINAL, LIVE, State
from shiftboss.queue.store.statement import Statement, Verb, sql_text

ROWS = 20_000
"""Rows that one search looks at."""

SECONDS = 0.1
"""After so long a search looks at no further window."""

FIRST_WINDOW = 300
"""A page of most lists is full after so many rows; each refresh looks at them again."""

GROWTH = 8
"""The next window is so many times as large, as far as there is time for it."""

WINDOWS = 3
"""So many statements a search has at most."""

COMPARISONS = (">", "<", ">=", "<=")

ALL = frozenset(State)


class Order(StrEnum):
    """In which order jobs come: by id, or as workers are to take them."""

    NEWEST = "newest"
    OLDEST = "oldest"
    DUE = "due"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of a job, or (negated) must not: the name of a text in `TEXTS`, with its values.

    `path`: the members that lead to a part of a JSON value.
    """

    name: str
    value: Any
    path: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for.

    `members`: parts of JSON values that are told of each job, as ("args", "kwargs", "to").
    """

    states: frozenset[State] = ALL
    conditions: tuple[Condition, ...] = ()
    order: Order = Order.NEWEST
    members: tuple[tuple[str, ...], ...] = ()

    @property
    def one_queue(self) -> str | None:
        """The one queue in whose jobs is searched, if it is one."""
        names = [one.value for one in self.conditions if one.name == "queue" and not one.negated]
        return str(names[0][0]) if len(names) == 1 and len(names[0]) == 1 else None

    @property
    def can_be_sorted(self) -> bool:
        """Whether an index gives its order."""
        if self.order is Order.DUE:
            return self.states <= {State.SCHEDULED, State.RETRYABLE}
        if self.order is Order.PRIORITY:
            return self.states == {State.AVAILABLE} and self.one_queue is not None
        return True


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job that was found, with its key, its tags, and the parts of its JSON values as texts."""

    job: JobRow
    key: str | None
    tags: list[str]
    members: list[str | None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list goes on: behind the job with this id; by due time and by priority also behind these.

    Where lists go by id, `at` is when the job was enqueued.
    """

    id: int
    at: datetime | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Searched:
    """What was found, in the order of the search.

    `looked`: rows that were looked at. `complete`: nothing lies beyond them. `edge`: the last that was looked at;
    from there a search can go on. `by_index`: every row that was looked at is one that is wanted.
    """

    rows: list[FoundJob]
    looked: int
    complete: bool
    edge: Place | None
    by_index: bool


_TIMES = {"enqueued": "enqueued_at", "due": "due_at", "started": "started_at"}
_ATTEMPTS = "failures + losses + case when state in ('running', 'completed') then 1 else 0 end"
_RAN = "case when state = 'running' then 1000 * extract(epoch from statement_timestamp() - started_at) end"

_AGO = "statement_timestamp() - make_interval(secs => {value})"


def _texts() -> dict[str, tuple[str, str]]:
    """For each condition its text for live jobs and for finished ones."""
    both = {
        "id": "id = any ({value}::bigint[])",
        "states": "state = any ({value}::text[])",
        "state": "state = {value}",
        "queue": "queue = any ({value}::text[])",
        "queue like": "queue like any ({value}::text[])",
        "task like": "task like any ({value}::text[])",
        "owner": "owner = any ({value}::text[])",
        "one owner": "owner = {value}",
        "owner like": "owner like any ({value}::text[])",
        "key": "key = any ({value}::text[])",
        "key like": "key like any ({value}::text[])",
        "tag": "tags && {value}::text[]",
        "tag like": "exists (select from unnest(tags) t where t like any ({value}::text[]))",
        "error": "(error_type ilike any ({value}::text[]) or error_message ilike any ({value}::text[]))",
        "word": "(task ilike any ({value}::text[]) or error_type ilike any ({value}::text[])"
        " or error_message ilike any ({value}::text[]))",
        "worker": "worker_id = any ({value}::bigint[])",
        "rerun_of": "rerun_of = any ({value}::bigint[])",
        "batch": "batch_id = any ({value}::bigint[])",
        "one batch": "batch_id = {value}",
        "priority": "priority = any ({value}::bigint[])",
        "attempt": f"{_ATTEMPTS} = any ({{value}}::bigint[])",
        "args": "args #>> {path}::text[] = any ({value}::text[])",
        "args like": "args #>> {path}::text[] like any ({value}::text[])",
        "meta": "meta #>> {path}::text[] = any ({value}::text[])",
        "meta like": "meta #>> {path}::text[] like any ({value}::text[])",
        "seen by": "(owner = {value} or {value} = any (watchers))",
        "of queues": "queue = any ({value}::text[])",
        "of owners": "owner = any ({value}::text[])",
    }
    texts = {name: (text, text) for name, text in both.items()}
    texts["reason"] = ("(state = 'quarantined' and quarantine_reason = any ({value}::text[]))", "false")
    texts["one reason"] = ("state = 'quarantined' and quarantine_reason = {value}", "false")
    # The two halves stand for the two partial indexes.
    texts["live key"] = (
        "key = any ({value}::text[]) and state <> 'quarantined' and (follow_up or not follow_up)",
        "false",
    )
    texts["nothing"] = ("false", "false")
    for sign in COMPARISONS:
        texts[f"id {sign}"] = (f"id {sign} {{value}}",) * 2
        texts[f"priority {sign}"] = (f"priority {sign} {{value}}",) * 2
        texts[f"attempt {sign}"] = (f"{_ATTEMPTS} {sign} {{value}}",) * 2
        texts[f"run {sign}"] = (f"{_RAN} {sign} {{value}}", f"run_ms {sign} {{value}}")
        for name, column in _TIMES.items():
            texts[f"{name} {sign}"] = (f"{column} {sign} {{value}}::timestamptz",) * 2
            texts[f"{name} {sign} ago"] = (f"{column} {sign} {_AGO}",) * 2
        texts[f"finished {sign}"] = ("false", f"finished_at {sign} {{value}}::timestamptz")
        texts[f"finished {sign} ago"] = ("false", f"finished_at {sign} {_AGO}")
    # Whole days, by which partitions are left out: no row of the others is looked at in vain.
    texts["finished since day"] = ("false", "finished_at >= date_trunc('day', {value}::timestamptz, 'UTC')")
    texts["finished since day ago"] = ("false", f"finished_at >= date_trunc('day', {_AGO}, 'UTC')")
    return texts


TEXTS = _texts()


def _row(looked: int, edge: int | None, edge_at: datetime | None, priority: int | None, *found: Any) -> "_Row":
    place = None if edge is None else Place(edge, edge_at, priority)
    if found[0] is None:
        return _Row(looked, place, None)
    id_, queue, task, state, *rest = found[:-3]
    return _Row(looked, place, FoundJob(JobRow(id_, queue, task, State(state), *rest), *found[-3:]))


@dataclass(frozen=True, slots=True)
class _Row:
    """The rows that were looked at, the last of them (with its time in this order), and a job that was found."""

    looked: int
    edge: Place | None
    found: FoundJob | None


_DOWN = Statement("search", _row)
_UP = Statement("search_after", _row)
_DUE = Statement("search_due", _row)
_PRIORITY = Statement("search_priority", _row)


@dataclass(frozen=True, slots=True)
class Narrowed(Statement[_Row]):
    """A statement in whose marked lines conditions stand: `texts` by the line's own words."""

    texts: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def sql(self) -> str:
        """The statement with its conditions."""
        text = sql_text(self.name)
        for mark, conditions in self.texts:
            text = text.replace(f"-- {mark}\n", "".join(f"and {one}\n" for one in conditions))
        return text


@dataclass(frozen=True, slots=True)
class Way:
    """How a search is carried out: conditions that an index serves and all others, for live and finished jobs.

    `few`: the index leads to few rows, which are all looked at.
    """

    driving: tuple[tuple[Condition, ...], tuple[Condition, ...]]
    narrowing: tuple[tuple[Condition, ...], tuple[Condition, ...]]
    few: bool = False

    @property
    def by_index(self) -> bool:
        """Whether every row that is looked at is one that is wanted."""
        return not any(
            narrowing and NOTHING not in driving
            for driving, narrowing in zip(self.driving, self.narrowing, strict=True)
        )

    @classmethod
    def of(cls, wanted: Search, *, authority: Authority) -> "Way":
        """The way of a search in somebody's name."""
        live, final = wanted.states & LIVE, wanted.states & FINAL
        asked = [one for one in wanted.conditions if not one.negated]
        names = {one.name for one in asked}
        if "reason" in names:
            final, live = frozenset(), live & {State.QUARANTINED}
        if any(name.startswith("finished ") for name in names):
            live = frozenset()
        if wanted.order in (Order.DUE, Order.PRIORITY):
            return _in_order(wanted, _within(authority))
        driver, how = _driver(asked, live, final)
        bounds = tuple(one for one in asked if one.name.startswith("id "))
        rest = tuple(one for one in wanted.conditions if one is not driver and one not in bounds)
        rest += _within(authority)
        ways = []
        for held, whole in ((live, LIVE), (final, FINAL)):
            drives, narrows = [*how, *bounds], [*rest]
            if not held:
                drives.append(NOTHING)
            elif not how and len(held) == 1 and (state := next(iter(held))) in _INDEXED:
                drives.append(Condition("state", str(state)))
            elif held != whole and not (driver and driver.name == "reason"):
                narrows.append(Condition("states", sorted(held)))
            if whole is FINAL:
                drives += _days(asked)
            ways.append((tuple(drives), tuple(narrows)))
        (live_drives, live_narrows), (final_drives, final_narrows) = ways
        few = driver is not None and driver.name in (*_FEW, "key")
        return cls((live_drives, final_drives), (live_narrows, final_narrows), few)


NOTHING = Condition("nothing", None)
_FEW = ("id", "rerun_of")
_ONE = ("batch", "owner", "reason")


def _within(authority: Authority) -> tuple[Condition, ...]:
    """What is asked of every job, so that only those are found that the authority may see."""
    reach = reach_of(authority)
    asked = {"seen by": reach["owner"], "of queues": reach["queues"], "of owners": reach["owners"]}
    return tuple(Condition(name, value) for name, value in asked.items() if value is not None)


def _in_order(wanted: Search, within: tuple[Condition, ...]) -> Way:
    """Where an index gives the order, all but what it holds anyway is asked afterwards."""
    narrows = list(wanted.conditions)
    if wanted.order is Order.PRIORITY:
        narrows = [one for one in narrows if one.negated or one.name != "queue"]
    elif len(wanted.states) == 1:
        narrows.append(Condition("states", sorted(wanted.states)))
    return Way(((), (NOTHING,)), ((*narrows, *within), ()))


_INDEXED = (State.QUARANTINED, State.RUNNING, State.CANCELLED, State.DISCARDED)


def _driver(
    asked: Sequence[Condition], live: frozenset[State], final: frozenset[State]
) -> tuple[Condition | None, tuple[Condition, ...]]:
    """The condition that an index of its own serves, and how it is asked of that."""
    by_name = {one.name: one for one in asked}
    for name in _FEW:
        if name in by_name:
            return by_name[name], (by_name[name],)
    if "key" in by_name and not final and State.QUARANTINED not in live:
        return by_name["key"], (Condition("live key", by_name["key"].value),)
    for name in _ONE:
        if name in by_name and len(by_name[name].value) == 1:
            return by_name[name], (Condition(f"one {name}", by_name[name].value[0]),)
    return None, ()


def _days(asked: Iterable[Condition]) -> list[Condition]:
    since = {"finished >": "finished since day", "finished >=": "finished since day"}
    since |= {f"{name} ago": f"{day} ago" for name, day in since.items()}
    return [Condition(since[one.name], one.value) for one in asked if one.name in since]


def search(
    wanted: Search,
    *,
    authority: Authority,
    beyond: Place | None = None,
    backwards: bool = False,
    limit: int,
    windows: int = WINDOWS,
    clock: Callable[[], float] = monotonic,
) -> Verb[Searched]:
    """The next jobs beyond a place, at most `limit`; `backwards`: those before it, the nearest ones first.

    By due time come scheduled and retryable jobs only, by priority the available ones of one queue, both forwards
    only; ValueError for other searches. After so many `windows` a walk ends in any case. `clock` tells seconds.

    `Owner` finds its own jobs and those that it watches, `Scoped` those of its queues and owners.
    """
    chosen = Way.of(wanted, authority=authority)
    statement, params = _statement(_plain(wanted, backwards=backwards), chosen)
    if wanted.order is Order.PRIORITY:
        params["queue"] = wanted.one_queue
    began, window = clock(), FIRST_WINDOW
    if chosen.by_index:
        window = limit
    elif chosen.few:
        window = ROWS
    rows: list[FoundJob] = []
    looked, complete, edge = 0, False, beyond
    for _ in range(windows):
        answer: list[_Row] = yield statement.call(
            beyond=edge.id if edge else None,
            beyond_due=edge.at if edge else None,
            beyond_priority=edge.priority if edge else None,
            window=window,
            limit=limit - len(rows),
            members=json.dumps(wanted.members),
            **params,
        )
        last = answer[0]
        rows += [row.found for row in answer if row.found is not None]
        looked, complete = looked + last.looked, last.looked < window
        if last.edge is not None:
            edge = last.edge
        spent = clock() - began
        if complete or len(rows) >= limit or looked >= ROWS or spent >= SECONDS:
            break
        # As many rows as there is time for, at the pace so far.
        affordable = int(looked * (SECONDS - spent) / max(spent, 0.001))
        window = max(FIRST_WINDOW // 2, min(GROWTH * window, affordable, ROWS - looked))
    return Searched(rows, looked, complete, edge, chosen.by_index)


def _plain(wanted: Search, *, backwards: bool) -> Statement[_Row]:
    if not wanted.can_be_sorted or (backwards and wanted.order in (Order.DUE, Order.PRIORITY)):
        raise ValueError(f"no index gives this order: {wanted.order}")
    match wanted.order:
        case Order.DUE:
            return _DUE
        case Order.PRIORITY:
            return _PRIORITY
    return _DOWN if (wanted.order is Order.NEWEST) != backwards else _UP


def _statement(plain: Statement[_Row], chosen: Way) -> tuple[Narrowed, dict[str, Any]]:
    params: dict[str, Any] = {}
    texts = []
    for kind, ways in (("driving", chosen.driving), ("narrowing", chosen.narrowing)):
        for table, conditions in zip(("live", "finished"), ways, strict=True):
            written = tuple(_written(one, 0 if table == "live" else 1, params) for one in conditions)
            texts.append((f"{kind} {table}", written))
    return Narrowed(plain.name, plain.row, tuple(texts)), params


def _written(condition: Condition, table: int, params: dict[str, Any]) -> str:
    """The condition's text, with the names of its parameters, whose values are added to `params`."""
    text = TEXTS[condition.name][table]
    names = {}
    for part, value in (("value", condition.value), ("path", list(condition.path))):
        if f"{{{part}}}" in text:
            name = f"{part}_{len(params)}"
            params[name] = value
            names[part] = f"%({name})s"
    # Only the two names are put in, which are made here.
    text = text.format(**names)
    return f"({text}) is not true" if condition.negated else text
