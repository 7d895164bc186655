"""The leases that a keeper holds, wherever the jobs are: waiting for a slot, in an executor, or being reported."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from shiftboss.queue.contract import Claimed, Lease
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.context import Cause

if TYPE_CHECKING:
    from shiftboss.queue.runtime.executor_process import ExecutorProcess


class Held:
    """A leased job. Times are seconds of the boot-time clock; the expiry is counted from *sending* the renewal.

    `worker_id`: in whose name it was claimed. `config`: what its revision says; None: whatever the task says now.
    `solo`: it gets an executor to itself. `cause`: why its run should end, since `asked_at`; `deaf`: it has not
    heard, and its process is to be ended.
    """

    executor: "ExecutorProcess | None" = None
    ticket = -1
    lost = False
    config: TaskConfig | None = None
    solo = False
    cause: Cause | None = None
    asked_at = 0.0
    began_at = 0.0
    deaf = False

    def __init__(self, job: Claimed, expires_at: float, renewed_at: float, *, worker_id: int = 0) -> None:
        self.job = job
        self.lease = job.lease
        self.expires_at = expires_at
        self.renewed_at = renewed_at
        self.worker_id = worker_id

    @property
    def timeout_seconds(self) -> float | None:
        """How long one attempt may run."""
        return self.config.timeout_seconds if self.config is not None else None

    def settle(self) -> None:
        """The handler has completed the job itself: there is nothing left to lose, to prolong or to submit."""
        self.lost, self.expires_at = True, math.inf


class Holdings:
    """All leases of one keeper.

    A job may stand in it twice: its run under a lease that was lost goes on until it has heard of that, and the
    keeper may have claimed it again.
    """

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._held: dict[Lease, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def claimed(self, jobs: Iterable[Claimed], sent_at: float, *, worker_id: int = 0) -> list[Held]:
        """Take in freshly claimed jobs; the claim was sent at `sent_at`."""
        expires_at = sent_at + self._lease_seconds
        held = [Held(job, expires_at, sent_at, worker_id=worker_id) for job in jobs]
        self._held.update((one.lease, one) for one in held)
        return held

    def stale(self, renewed_before: float) -> list[Held]:
        """Leases that were last renewed before then, and are not known to be lost."""
        return [one for one in self._held.values() if one.renewed_at < renewed_before and not one.lost]

    def renewed(self, leases: Iterable[Lease], sent_at: float) -> None:
        """A heartbeat sent at `sent_at` prolonged these."""
        for lease in leases:
            if (one := self.get(lease)) is not None:
                one.renewed_at = sent_at
                one.expires_at = sent_at + self._lease_seconds
                if one.executor is not None:
                    one.executor.renewed(one)

    def drop(self, leases: Iterable[Lease]) -> None:
        """Forget leases that are settled or lost; a newer lease on the same job stays."""
        for lease in leases:
            self._held.pop(lease, None)

    def get(self, lease: Lease) -> Held | None:
        """What is held under exactly this lease."""
        return self._held.get(lease)
