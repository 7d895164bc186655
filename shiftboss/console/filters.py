"""What a list of jobs is narrowed to. It lives in the address alone, so that a link shows the same list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from shiftboss.conf import ConfigError, check_queue
from shiftboss.console import columns, conditions, query
from shiftboss.console.columns import VIEW_ARGUMENTS
from shiftboss.console.query import Query, Term, Text
from shiftboss.permissions import Person
from shiftboss.queue.errors import NoSuchJob
from shiftboss.queue.states import State
from shiftboss.queue.store.search import ALL, Order, Place

LARGEST_ID = 2**63 - 1
MOST_PRIORITY = 100
ANY = "any"
"""Stands in an address for all states together."""


class BadFilter(ValueError):
    """A filter in an address has a value that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """What is asked of jobs, in which order and with which columns they are shown, and where the page lies.

    `states`: those that are looked through. `columns`: none are the usual ones. `before`, `after`: the job that
    the page lies beyond, or `place` where the order is not by id. `seen`: the newest job that the reader has seen.
    """

    states: frozenset[State] = frozenset({State.RUNNING})
    asked: Query = field(default_factory=Query)
    order: Order = Order.NEWEST
    columns: tuple[str, ...] = ()
    before: int | None = None
    after: int | None = None
    place: Place | None = None
    seen: int | None = None

    @property
    def state(self) -> State | None:
        """The one state that is looked through, if it is one."""
        return next(iter(self.states)) if len(self.states) == 1 else None

    @property
    def queue(self) -> str | None:
        """The one queue that is asked for, if it is one."""
        names = self.asked.literals("queue")
        return names[0] if len(names) == 1 else None

    @property
    def counts_whole_queues(self) -> bool:
        """Whether nothing is asked but perhaps a queue, so that counts of queues are counts of this list."""
        return not self.asked.text or (self.queue is not None and len(self.asked.terms) == 1)

    def of_states(self, states: Iterable[State]) -> "JobFilter":
        """The first page of other states."""
        return replace(self.first(), states=frozenset(states))

    def asking(self, asked: Query) -> "JobFilter":
        """The first page of what else is asked."""
        return replace(self.first(), asked=asked)

    def without(self, term: Term) -> "JobFilter":
        """The first page without one of the terms."""
        return self.asking(self.asked.without(term))

    def first(self) -> "JobFilter":
        """The first page."""
        return replace(self, before=None, after=None, place=None, seen=None)

    def beyond(self, place: Place, *, seen: int | None) -> "JobFilter":
        """The page that follows, behind this place."""
        if not self.by_id:
            return replace(self, place=place, seen=None)
        job_id = place.id
        down = self.order is not Order.OLDEST
        return replace(self, before=job_id if down else None, after=None if down else job_id, seen=seen)

    def ahead_of(self, place: Place, *, seen: int | None) -> "JobFilter":
        """The page that comes before, up to this place; where the order is not by id, the first."""
        if not self.by_id:
            return self.first()
        job_id = place.id
        down = self.order is not Order.OLDEST
        return replace(self, before=None if down else job_id, after=job_id if down else None, seen=seen)

    @property
    def by_id(self) -> bool:
        """Whether the order is that of the ids."""
        return self.order in (Order.NEWEST, Order.OLDEST)

    @property
    def backwards(self) -> bool:
        """Whether the page ends where it is told to lie, and does not begin there."""
        return (self.before if self.order is Order.OLDEST else self.after) is not None

    @property
    def is_first(self) -> bool:
        """Whether this is the first page."""
        return self.before is None and self.after is None and self.place is None

    @property
    def state_words(self) -> str:
        """The states as an address has them."""
        return ANY if self.states == ALL else ",".join(state for state in State if state in self.states)

    @property
    def query(self) -> str:
        """The filter as the query of an address, `?state=…`."""
        named = {
            "state": self.state_words,
            "q": self.asked.text or None,
            "sort": None if self.order is Order.NEWEST else self.order,
            "columns": ",".join(self.columns) or None,
            "before": self.before,
            "after": self.after,
            "place": _said(self.place) if self.place else None,
            "seen": self.seen,
        }
        return "?" + urlencode({name: value for name, value in named.items() if value is not None})


def read(given: Mapping[str, str]) -> JobFilter:
    """The filter that an address asks for. What cannot be read of a query is among its mistakes.

    Raises BadFilter where another part of the address cannot be read.
    """
    before, after = id_of(given, "before"), id_of(given, "after")
    if before is not None and after is not None:
        raise BadFilter("a page lies before an id or after one, not both")
    order = _order(given)
    if order in (Order.DUE, Order.PRIORITY):
        before = after = None
    asked = query.parse(given.get("q", "").strip())
    queue = _queue(given)
    if queue and not asked.mistakes:
        term = Term(name="queue", values=(Text((queue,)),))
        asked = query.of([term, *(one for one in asked.terms if one != term)])
    states = _states(given, otherwise=ALL if asked.text and not queue else frozenset({State.RUNNING}))
    if (told := conditions.states(asked)) is not None:
        states = told
        if told:
            asked = query.of([term for term in asked.terms if term.name != "state"])
        else:
            asked = replace(asked, terms=(), mistakes=(_no_state(asked),))
            states = ALL
    return JobFilter(
        states=states,
        asked=asked,
        order=order,
        columns=columns.read(_all(given, "columns")),
        before=before,
        after=after,
        place=_place(given) if order in (Order.DUE, Order.PRIORITY) else None,
        seen=id_of(given, "seen"),
    )


def permitted(wanted: JobFilter, *, by: Person) -> JobFilter:
    """The same, with a mistake where it asks for what this person may not see."""
    if by.allows(VIEW_ARGUMENTS) or not any(term.name == "args" for term in wanted.asked.terms):
        return wanted
    problem = _("Arguments are looked into once they were revealed, which needs the permission %(permission)s.")
    problem %= {"permission": VIEW_ARGUMENTS}
    at = wanted.asked.text.lower().find("args.")
    mistake = query.Mistake(max(at, 0), len("args"), problem)
    return replace(wanted, asked=replace(wanted.asked, terms=(), mistakes=(mistake,)))


def checked_id(job_id: int) -> int:
    """The id itself. Raises NoSuchJob for a number that no job can have."""
    if job_id > LARGEST_ID:
        raise NoSuchJob(f"there is no job {job_id}")
    return job_id


def _no_state(asked: Query) -> query.Mistake:
    at = max(asked.text.find("state"), 0)
    return query.Mistake(at, len("state"), _("No job is in two states at once."))


def _all(given: Mapping[str, str], name: str) -> list[str]:
    """What an address says under one name, once or more often, with commas between."""
    texts = given.getlist(name) if isinstance(given, QueryDict) else [given.get(name, "")]
    return [word for text in texts for part in text.split(",") if (word := part.strip())]


def _states(given: Mapping[str, str], *, otherwise: frozenset[State]) -> frozenset[State]:
    words = _all(given, "state")
    if ANY in words:
        return ALL
    try:
        return frozenset(State(word) for word in words) or otherwise
    except ValueError as problem:
        raise BadFilter(str(problem)) from None


def _order(given: Mapping[str, str]) -> Order:
    try:
        return Order(given.get("sort") or Order.NEWEST)
    except ValueError as problem:
        raise BadFilter(str(problem)) from None


def _place(given: Mapping[str, str]) -> Place | None:
    text = given.get("place")
    if not text:
        return None
    due, *priority, id_ = text.split("~")
    try:
        at = datetime.fromisoformat(due).astimezone(UTC)
        job_id = id_of({"place": id_}, "place")
        [level] = map(int, priority[:1]) if priority else [None]
    except (ValueError, OverflowError):
        raise BadFilter("place must be a time and an id") from None
    if job_id is None or len(priority) > 1 or not 1900 <= at.year <= 9000 or abs(level or 0) > MOST_PRIORITY:
        raise BadFilter("place must be a time and an id")
    return Place(job_id, at, level)


def _said(place: Place) -> str:
    due = place.at.astimezone(UTC).isoformat() if place.at else ""
    return "~".join(str(part) for part in (due, place.priority, place.id) if part is not None)


def _queue(given: Mapping[str, str]) -> str | None:
    name = given.get("queue")
    if not name:
        return None
    try:
        return check_queue(name)
    except ConfigError as problem:
        raise BadFilter(str(problem)) from None


def queue_of(given: Mapping[str, str]) -> str:
    """The queue that an address or a form names. Raises BadFilter where it names none that can be."""
    name = _queue(given)
    if name is None:
        raise BadFilter("a queue must be named")
    return name


def id_of(given: Mapping[str, str], name: str) -> int | None:
    """The id in an address, or None. Raises BadFilter."""
    text = given.get(name)
    if not text:
        return None
    # The length first: Python refuses to read thousands of digits, and a bigint has nineteen.
    if len(text) > 19 or not (text.isascii() and text.isdigit()) or int(text) > LARGEST_ID:
        raise BadFilter(f"{name} must be an id")
    return int(text)
