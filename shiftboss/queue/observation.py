"""What observers are told, and the bounded backlog in which it waits for them."""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

T = TypeVar("T")

WORDS = ("on_enqueue", "on_start", "on_retry", "on_success", "on_failure", "on_abort", "on_drain")
"""The methods that an observer may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What an observer is told of a job: never its arguments, its result or the text of an error.

    `at`: when it happened, in seconds since 1970 by that host's clock. `attempt` counts from 1. `seconds`: how
    long the attempt ran. `code`: why it did not succeed, such as `handler_raised`, or `snoozed`, or the cause of
    its end. `retry_in_seconds`: when it is to run again. What does not apply is None.
    """

    at: float
    job_id: int
    task: str
    queue: str
    priority: int
    attempt: int | None = None
    fence: int | None = None
    worker_id: int | None = None
    seconds: float | None = None
    code: str | None = None
    error_type: str | None = None
    retry_in_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What an observer is told of a worker that drains: `in_hand` jobs are leased by it now."""

    at: float
    worker_id: int
    pool: str
    host: str
    pid: int
    in_hand: int


Told = tuple[str, dict[str, Any]]
"""A word with its facts, as it waits and as it crosses to the observers' process."""


class Backlog(Generic[T]):
    """What waits for somebody slower: at most `limit`, what comes then is dropped and counted. For any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[T] = deque()
        self._turn = threading.Condition()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, items: Iterable[T]) -> None:
        """Add what there is room for."""
        with self._turn:
            for item in items:
                if len(self._waiting) < self._limit:
                    self._waiting.append(item)
                else:
                    self.dropped += 1
            self._turn.notify_all()

    def first(self, limit: int, *, wait_seconds: float = 0.0) -> list[T]:
        """The oldest, at most `limit`, which stay until they are removed; wait so long where there is none."""
        with self._turn:
            if wait_seconds:
                self._turn.wait_for(lambda: self._waiting, wait_seconds)
            return list(islice(self._waiting, limit))

    def remove(self, number: int, *, told: bool) -> None:
        """Take out the oldest; those that nobody was told of are counted as dropped."""
        with self._turn:
            for _ in range(number):
                self._waiting.popleft()
            self.dropped += 0 if told else number
            self._turn.notify_all()

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until nothing is left, at most so long."""
        with self._turn:
            self._turn.wait_for(lambda: not self._waiting, seconds)
