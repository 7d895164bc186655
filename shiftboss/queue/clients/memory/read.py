"""What the record says. `Owner` sees its own jobs and those that it watches; `System` sees all."""

from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.clients.memory.record import Record
from shiftboss.queue.jobs import (
    AttemptRow,
    EventRow,
    JobDetail,
    JobRow,
)
from shiftboss.queue.states import FINAL, State


class Reading(Record):
    """The reads."""

    def job(self, *, authority: Authority, job_id: int) -> JobDetail | None:
        """One job, live or finished; None where there is none that the authority may see."""
        with self._turn:
            job = self._visible(job_id, authority)
            if job is None:
                return None
            holder = self._shelf.holder(job.key)
            other = holder.id if holder is not None and holder.id != job.id else None
            revision = None if job.revision_id is None else self._revisions.get(job.revision_id)
            return job.detail(now=self._clock(), key_holder=other, revision=revision)

    def jobs(
        self, *, authority: Authority, state: State, queue: str | None = None, limit: int = 50
    ) -> list[JobRow]:
        """Jobs in a state, newest id first, at most `limit`."""
        owner = owner_of(authority)
        with self._turn:
            found = [
                job
                for job in (self._shelf.finished if state in FINAL else self._shelf.live).values()
                if job.state is state and job.visible(owner) and queue in (None, job.queue)
            ]
            return [job.row() for job in sorted(found, key=lambda job: -job.id)[:limit]]

    def attempts(self, *, authority: Authority, job_id: int) -> list[AttemptRow]:
        """The attempts of a job that did not succeed, oldest first; none where the job is not visible."""
        with self._turn:
            seen = self._visible(job_id, authority) is not None or owner_of(authority) is None
            return list(self._shelf.attempts.get(job_id, ())) if seen else []

    def events(self, *, authority: Authority, job_id: int) -> list[EventRow]:
        """The stored events of a job in order; none where the job is not visible."""
        with self._turn:
            seen = self._visible(job_id, authority) is not None or owner_of(authority) is None
            return list(self._shelf.events.get(job_id, ())) if seen else []

    def _visible(self, job_id: int, authority: Authority) -> Job | None:
        owner = owner_of(authority)
        job = self._shelf.get(job_id)
        return job if job is not None and job.visible(owner) else None
