"""What a worker leases, by kind of executor: which tasks, and where in each queue the next claim starts."""

from collections.abc import Callable, Iterable, Sequence

from shiftboss.queue.contract import Claimed
from shiftboss.queue.runtime.budget import Budget
from shiftboss.queue.runtime.marks import Marks

REST_SHARE = 20
"""Of a rested intake: a claim that brought nothing and took t is followed by none for 20·t."""
SHORTEST_REST_SECONDS = 0.05
MAX_CLAIM = 1024
"""More jobs are leased by several claims."""


class Intake:
    """The tasks of one kind, the marks of their claims, and how many jobs there is room for.

    A *rested* one takes its time after a claim without jobs: where its tasks are few among many, such a claim
    looks at all the others, and every notification meant for those would start one.
    """

    def __init__(
        self, *, queues: Iterable[str], poll_seconds: float, appetite: Callable[[], int], rested: bool
    ) -> None:
        self.tasks: set[str] = set()
        self.marks = Marks(queues, poll_seconds=poll_seconds)
        self._appetite = appetite
        self._rested = rested
        self._rests_until = 0.0
        self._budget = Budget(MAX_CLAIM)

    @property
    def want(self) -> int:
        """How many jobs to lease now."""
        return min(self._appetite(), self._budget.rows) if self.tasks else 0

    def open_queues(self, now: float) -> list[str]:
        """Queues in which a claim may find something now."""
        return self.marks.open_queues(now) if now >= self._rests_until else []

    def claimed(self, jobs: Sequence[Claimed], *, began: float, now: float) -> None:
        """Note what a claim brought."""
        self._budget.passed()
        if self._rested and not jobs:
            self._rests_until = now + max(SHORTEST_REST_SECONDS, REST_SHARE * (now - began))

    def missed(self) -> None:
        """Note that a claim got no answer in time: what it leased is lost, so the next one takes less."""
        self._budget.failed()

    def next_try(self) -> float:
        """When a claim is worth the next try."""
        return max(self.marks.next_try(), self._rests_until)
