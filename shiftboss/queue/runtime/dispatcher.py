"""Which job goes to which executor, and how many more to lease. Plain decisions; sending is the executor's."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from shiftboss.queue.runtime.durations import Durations
from shiftboss.queue.runtime.executor_process import ExecutorProcess
from shiftboss.queue.runtime.holdings import Held

STALLED_SECONDS = 0.25
"""Without an outcome for so long, full executors are slow ones: nothing is leased ahead."""

GIVE_BACK_SECONDS = 1.0
"""A job that has waited here for so long is given back: another worker may have a free slot."""

SUSPECT_SECONDS = 2.0
"""A suspect that has waited for so long behind what runs gets a solo executor: runs may take hours."""


class Dispatcher:
    """Holds leased jobs that wait for a slot and deals them out.

    A *suspect* (its last executor died with several jobs started) is dealt to an executor that is empty, and
    that executor gets nothing else until the suspect has ended; where none gets empty, it becomes a solo job. A
    *solo* job goes to an executor of one thread, of which there are at most `isolated`. Which of them a claim
    brings is known only then: what one line has too much of counts for the other's appetite too, and is given
    back.
    """

    def __init__(self, *, clock: Callable[[], float], isolated: int) -> None:
        self.durations = Durations()
        self._clock = clock
        self._waiting: deque[tuple[float, Held]] = deque()
        self._suspects: deque[Held] = deque()
        self._solo: deque[tuple[float, Held]] = deque()
        self._isolated = isolated
        self._last_outcome_at = clock()
        self._behind_since: float | None = None

    @property
    def waiting(self) -> int:
        """Leased jobs that wait here."""
        return len(self._waiting) + len(self._suspects) + len(self._solo)

    @property
    def solo(self) -> int:
        """Leased jobs that wait for an executor to themselves."""
        return len(self._solo)

    def ended(self, task: str, seconds: float) -> None:
        """Take in how long a handler ran; `moved` after the last of them."""
        self.durations.add(task, seconds)

    def moved(self) -> None:
        """Outcomes have come just now."""
        self._last_outcome_at = self._clock()

    def appetite(self, executors: Iterable[ExecutorProcess]) -> int:
        """How many more jobs to lease now; 0 while the batch would be small for no gain."""
        ready = [executor for executor in executors if executor.ready and not executor.reserved]
        slots = sum(executor.threads for executor in ready)
        beyond = max(0, len(self._solo) - self._isolated) + max(0, len(self._suspects) - slots)
        in_play = len(self._waiting) + beyond + sum(len(executor.in_hand) for executor in ready)
        if not ready:
            return 0
        free = slots - in_play
        if free <= 0 and self._clock() - self._last_outcome_at > STALLED_SECONDS:
            return 0
        target = slots + self.durations.prefetch(slots)
        return target - in_play if free > 0 or in_play <= target // 2 else 0

    def solo_appetite(self, executors: Iterable[ExecutorProcess]) -> int:
        """How many more solo jobs to lease now."""
        return max(0, self._free_solo(executors) - len(self._solo))

    def _free_solo(self, executors: Iterable[ExecutorProcess]) -> int:
        """How many solo jobs have an executor to themselves, or may have one started."""
        return max(0, self._isolated - sum(bool(executor.in_hand) for executor in executors))

    def add(self, jobs: Iterable[Held]) -> None:
        """Take in leased jobs, in the order in which they are to run."""
        now = self._clock()
        for held in jobs:
            self.durations.leased(len(held.job.args))
            if held.solo:
                self._solo.append((now, held))  # alone in any case
            elif held.job.suspect:
                self._suspects.append(held)
            else:
                self._waiting.append((now, held))

    def deal(self, executors: Sequence[ExecutorProcess]) -> None:
        """Hand jobs to executors that have room."""
        self._deal_suspects(executors)
        for executor in executors:
            if not self._waiting:
                return
            if executor.ready and not executor.reserved and (batch := self._take_for(executor)):
                executor.run(batch)

    def deal_solo(self, executors: Iterable[ExecutorProcess]) -> None:
        """Hand solo jobs to executors that have none."""
        for executor in executors:
            if not self._solo:
                return
            if executor.ready and not executor.in_hand:
                executor.run([self._solo.popleft()[1]])

    def _deal_suspects(self, executors: Sequence[ExecutorProcess]) -> None:
        ready = [executor for executor in executors if executor.ready]
        if not self._suspects or not ready:
            self._behind_since = None
            self._free(ready)
            return
        if not any(executor.reserved for executor in executors if executor.in_hand):
            chosen = min(ready, key=lambda executor: (not executor.reserved, len(executor.in_hand)))
            chosen.reserved = True
            if not chosen.in_hand:
                self._behind_since = None
                chosen.run([self._suspects.popleft()])
                return
        now = self._clock()
        if self._behind_since is None:
            self._behind_since = now
        elif self._isolated and now - self._behind_since > SUSPECT_SECONDS:
            self._solo.extend((now, held) for held in self._suspects)
            self._suspects.clear()
            self._free(ready)

    def _free(self, executors: Iterable[ExecutorProcess]) -> None:
        """Who was reserved for suspects, and still runs others, is there for all again."""
        for executor in executors:
            if not any(held.job.suspect for held in executor.in_hand.values()):
                executor.reserved = False

    def _take_for(self, executor: ExecutorProcess) -> list[Held]:
        threads, in_hand = executor.threads, len(executor.in_hand)
        # Slow jobs in hand occupy threads; fast ones may queue up behind as long as one thread is left to them.
        slow = sum(not self.durations.queued(held.job.task, threads) for held in executor.in_hand.values())
        batch: list[Held] = []
        while self._waiting:
            _, held = self._waiting[0]
            room = self.durations.queued(held.job.task, threads) if slow < threads else 0
            if in_hand >= threads + room:
                break
            self._waiting.popleft()
            batch.append(held)
            in_hand += 1
            slow += not room
        return batch

    def withdraw(self, held: Held) -> bool:
        """Take one job out; False where it does not wait here."""
        for line in (self._waiting, self._solo):
            places = (one for one, (_, waiting) in enumerate(line) if waiting is held)
            if (place := next(places, None)) is not None:
                del line[place]
                return True
        if held in self._suspects:
            self._suspects.remove(held)
            return True
        return False

    def surplus(self, solo_executors: Iterable[ExecutorProcess]) -> list[Held]:
        """Take out the jobs that have waited too long for a slot: to be given back.

        Of the solo ones only those for which no executor is free or starting.
        """
        before = self._clock() - GIVE_BACK_SECONDS
        found = []
        while self._waiting and self._waiting[0][0] < before:
            found.append(self._waiting.popleft()[1])
        for place in range(len(self._solo) - 1, self._free_solo(solo_executors) - 1, -1):
            if self._solo[place][0] < before:
                found.append(self._solo[place][1])
                del self._solo[place]
        return found

    def clear(self) -> list[Held]:
        """Take out all that wait here."""
        found = [*self._suspects, *(held for _, held in (*self._solo, *self._waiting))]
        self._suspects.clear()
        self._solo.clear()
        self._waiting.clear()
        return found
