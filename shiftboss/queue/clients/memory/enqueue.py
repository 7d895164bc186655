"""What clients do: put jobs into queues."""

from collections.abc import Iterable

from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.clients.memory import moves
from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.clients.memory.record import Record
from shiftboss.queue.errors import KeyHeld
from shiftboss.queue.jobs import (
    Enqueued,
    NewJob,
    OnConflict,
)
from shiftboss.queue.keys import scoped_key
from shiftboss.queue.states import WAITING, State


class Enqueueing(Record):
    """The verbs of clients."""

    def enqueue(self, job: NewJob, *, authority: Authority) -> Enqueued:
        """Put one job into its queue; `Owner` becomes the job's owner. Raises KeyHeld."""
        with self._turn:
            return self._enqueue(job, authority)

    def enqueue_many(self, jobs: Iterable[NewJob], *, authority: Authority) -> list[Enqueued]:
        """Put many jobs into their queues, all or none; answers come in the order of the jobs. Raises KeyHeld."""
        jobs = list(jobs)
        owner_of(authority)
        order = sorted(range(len(jobs)), key=lambda place: (jobs[place].key or "").encode())
        with self._turn, self._shelf.all_or_none():
            answers = {place: self._enqueue(jobs[place], authority) for place in order}
        return [answers[place] for place in range(len(jobs))]

    def _enqueue(self, job: NewJob, authority: Authority) -> Enqueued:
        owner = owner_of(authority)
        key = None if job.key is None else scoped_key(job.key, authority=authority, scope=job.key_scope)
        holder, follow_up = self._shelf.holder(key), self._shelf.holder(key, follow_up=True)
        if holder is None and follow_up is None:
            return self._add(job, owner, key)
        if job.follow_up and follow_up is None and holder is not None and holder.state is State.RUNNING:
            return self._add(job, owner, key, follow_up=True)
        met = (follow_up if job.follow_up or holder is None else holder) or holder
        assert met is not None
        if job.on_conflict is OnConflict.EXISTING:
            return Enqueued(met.id, met.state, met.enqueued_at, existing=True)
        if job.on_conflict is OnConflict.REPLACE and not met.visible(owner):
            raise KeyHeld(str(job.key), met.id, "it is another owner's, and not this authority's to replace")
        if job.on_conflict is OnConflict.REPLACE and met.state in WAITING:
            self._put(moves.finish(met, State.CANCELLED, self._clock(), cause="superseded"))
            return self._add(job, owner, key, follow_up=met.follow_up)
        if job.on_conflict is OnConflict.REPLACE:
            advice = "it is running, and only a waiting job can be replaced; see follow_up"
            raise KeyHeld(str(job.key), met.id, advice)
        raise KeyHeld(str(job.key), met.id, "wait for its end, or choose on_conflict `existing` or `replace`")

    def _add(self, job: NewJob, owner: str | None, key: str | None, *, follow_up: bool = False) -> Enqueued:
        now = self._clock()
        due_at = now if job.due_at is None else job.due_at
        state = State.SCHEDULED if follow_up or due_at > now else State.AVAILABLE
        self._last_id += 1
        new = Job.new(
            job,
            id=self._last_id,
            state=state,
            due_at=due_at,
            enqueued_at=now,
            owner=owner,
            key=key,
            follow_up=follow_up,
            revision_id=self._revision(job.revision),
        )
        self._put(new)
        return Enqueued(new.id, state, now)
