"""What a list of jobs is narrowed to. It lives in the address alone, so that a link shows the same list."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from shiftboss.conf import ConfigError, check_queue
from shiftboss.queue.errors import NoSuchJob
from shiftboss.queue.states import State

LARGEST_ID = 2**63 - 1


class BadFilter(ValueError):
    """A filter in an address has a value that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """A state, perhaps a queue, and the id that the page lies before or after."""

    state: State = State.RUNNING
    queue: str | None = None
    before: int | None = None
    after: int | None = None

    def of_state(self, state: State) -> "JobFilter":
        """The first page of another state, the queue kept."""
        return JobFilter(state=state, queue=self.queue)

    def newest(self) -> "JobFilter":
        """The first page."""
        return replace(self, before=None, after=None)

    def older_than(self, job_id: int) -> "JobFilter":
        """The page that follows."""
        return replace(self, before=job_id, after=None)

    def newer_than(self, job_id: int) -> "JobFilter":
        """The page that comes before."""
        return replace(self, before=None, after=job_id)

    @property
    def query(self) -> str:
        """The filter as the query of an address, `?state=…`."""
        named = {"state": self.state, "queue": self.queue, "before": self.before, "after": self.after}
        return "?" + urlencode({name: value for name, value in named.items() if value is not None})


def read(query: Mapping[str, str]) -> JobFilter:
    """The filter that an address asks for. Raises BadFilter."""
    before, after = id_of(query, "before"), id_of(query, "after")
    if before is not None and after is not None:
        raise BadFilter("a page lies before an id or after one, not both")
    return JobFilter(state=_state(query), queue=_queue(query), before=before, after=after)


def checked_id(job_id: int) -> int:
    """The id itself. Raises NoSuchJob for a number that no job can have."""
    if job_id > LARGEST_ID:
        raise NoSuchJob(f"there is no job {job_id}")
    return job_id


def _state(query: Mapping[str, str]) -> State:
    try:
        return State(query.get("state") or State.RUNNING)
    except ValueError as problem:
        raise BadFilter(str(problem)) from None


def _queue(query: Mapping[str, str]) -> str | None:
    name = query.get("queue")
    if not name:
        return None
    try:
        return check_queue(name)
    except ConfigError as problem:
        raise BadFilter(str(problem)) from None


def queue_of(query: Mapping[str, str]) -> str:
    """The queue that an address or a form names. Raises BadFilter where it names none that can be."""
    name = _queue(query)
    if name is None:
        raise BadFilter("a queue must be named")
    return name


def id_of(query: Mapping[str, str], name: str) -> int | None:
    """The id in an address, or None. Raises BadFilter."""
    text = query.get(name)
    if not text:
        return None
    # The length first: Python refuses to read thousands of digits, and a bigint has nineteen.
    if len(text) > 19 or not (text.isascii() and text.isdigit()) or int(text) > LARGEST_ID:
        raise BadFilter(f"{name} must be an id")
    return int(text)
