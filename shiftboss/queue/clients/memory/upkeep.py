"""What maintainers and keepers do: stage, reap, end what is late."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.clients.memory import moves
from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.clients.memory.record import Record
from shiftboss.queue.states import WAITING, State, Verb


class Upkeep(Record):
    """The verbs of upkeep."""

    def _reap(self, job: Job, now: datetime, *how: Any) -> None:
        after, attempt = moves.reap(job, now, *how)
        self._shelf.attempts[job.id].append(attempt)
        self._put(after)

    def stage(self, *, authority: Authority, limit: int = 5000) -> int:
        """Make due jobs available, and follow-ups whose key is free; at most `limit`. Answers how many."""
        require_system(authority, "stage")
        with self._turn:
            now = self._clock()
            due = [
                job
                for job in self._shelf.live.values()
                if job.due_at <= now
                and moves.leads_to(job, Verb.STAGE) is not None
                and not (job.follow_up and self._shelf.holder(job.key))
            ]
            due = sorted(due, key=lambda job: (job.due_at, job.id))[:limit]
            for job in due:
                self._put(replace(job, state=State.AVAILABLE, follow_up=False))
            return len(due)

    def reap(self, *, authority: Authority, limit: int = 1000) -> list[int]:
        """Take jobs from expired leases: retryable at once, or quarantined at the loss limit; answers ids."""
        require_system(authority, "reap")
        with self._turn:
            now = self._clock()
            expired = [
                job
                for job in self._shelf.live.values()
                if job.lease_expires_at is not None and job.lease_expires_at <= now
            ]
            expired = sorted(expired, key=lambda job: job.id)[:limit]
            for job in expired:
                self._reap(job, now)
            return [job.id for job in expired]

    def expire(self, *, authority: Authority, limit: int = 1000) -> int:
        """Cancel jobs that still wait after their deadline, at most `limit`; answers how many."""
        require_system(authority, "expire")
        with self._turn:
            now = self._clock()
            late = [
                job
                for job in self._shelf.live.values()
                if job.state in WAITING and job.deadline is not None and job.deadline <= now
            ]
            late = sorted(late, key=lambda job: job.id)[:limit]
            for job in late:
                self._put(moves.finish(job, State.CANCELLED, now, cause="deadline", worker_id=None))
            return len(late)
