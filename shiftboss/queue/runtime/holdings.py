"""The leases that a keeper holds, wherever the jobs are: waiting for a slot, in an executor, or being reported."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shiftboss.queue.contract import Claimed, Lease

if TYPE_CHECKING:
    from shiftboss.queue.runtime.executor_process import ExecutorProcess


@dataclass(slots=True)
class Held:
    """A leased job. Times are seconds of the boot-time clock; the expiry is counted from *sending* the renewal."""

    job: Claimed
    expires_at: float
    renewed_at: float
    executor: "ExecutorProcess | None" = None
    ticket: int = -1
    lost: bool = False


class Holdings:
    """All leases of one keeper, by job id."""

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._held: dict[int, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def claimed(self, jobs: Iterable[Claimed], sent_at: float) -> list[Held]:
        """Take in freshly claimed jobs; the claim was sent at `sent_at`."""
        expires_at = sent_at + self._lease_seconds
        held = [Held(job, expires_at, sent_at) for job in jobs]
        self._held.update((one.job.id, one) for one in held)
        return held

    def stale(self, renewed_before: float) -> list[Held]:
        """Leases that were last renewed before then, and are not known to be lost."""
        return [one for one in self._held.values() if one.renewed_at < renewed_before and not one.lost]

    def renewed(self, job_ids: Iterable[int], sent_at: float) -> None:
        """A heartbeat sent at `sent_at` prolonged these."""
        for job_id in job_ids:
            if (one := self._held.get(job_id)) is not None:
                one.renewed_at = sent_at
                one.expires_at = sent_at + self._lease_seconds
                if one.executor is not None:
                    one.executor.renewed(one)

    def drop(self, job_ids: Iterable[int]) -> None:
        """Forget leases that are settled or lost."""
        for job_id in job_ids:
            self._held.pop(job_id, None)

    def get(self, job_id: int) -> Held | None:
        """The lease on this job, if it is held."""
        return self._held.get(job_id)

    def holds(self, lease: Lease) -> bool:
        """Whether exactly this lease is held."""
        one = self._held.get(lease.job_id)
        return one is not None and one.job.fence == lease.fence
