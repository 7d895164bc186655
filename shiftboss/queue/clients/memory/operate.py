"""What people do to jobs, many at a time, and to queues."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, owner_of, require_system
from shiftboss.queue.clients.memory import moves
from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.clients.memory.record import Record
from shiftboss.queue.clients.memory.shelf import KeyTaken
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.jobs import (
    Answer,
    Changed,
    Enqueued,
    Limits,
    Unchanged,
    Why,
    check_queue,
)
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import FINAL, Actor, QuarantineReason, State, Verb

Change = Callable[[Job], Job]


class Operating(Record):
    """The verbs of people."""

    def cancel(self, job_ids: Sequence[int], *, authority: Authority, cause: str = "user") -> Answer:
        """End jobs: waiting and quarantined ones at once; of running ones the end is asked for."""
        owner = owner_of(authority)

        def ask(job: Job) -> Job:
            if job.state is not State.RUNNING:
                return moves.finish(job, State.CANCELLED, self._clock(), cause=cause, worker_id=None)
            asked_at = job.cancel_requested_at or self._clock()
            return replace(job, cancel_cause=job.cancel_cause or cause, cancel_requested_at=asked_at)

        with self._turn:
            answer = self._act(Verb.CANCEL, job_ids, ask, owner=owner)
            asked = [self._shelf.live[job.id] for job in answer.changed if job.after is State.RUNNING]
            told = {job.worker_id for job in asked}
            for worker_id, _, ordered in list(self._listeners.values()):
                if worker_id in told:
                    ordered()
        return answer

    def expedite(self, job_ids: Sequence[int], *, authority: Authority, by: str) -> Answer:
        """Make waiting jobs available before they are due."""
        return self._operate(
            Verb.EXPEDITE,
            job_ids,
            lambda job: replace(
                job, state=State.AVAILABLE, due_at=min(job.due_at, self._clock()), follow_up=False
            ),
            authority=authority,
            by=by,
        )

    def reinstate(self, job_ids: Sequence[int], *, authority: Authority, by: str, limits: Limits) -> Answer:
        """Let quarantined jobs run again, with as many more attempts as `limits` says. A held key is named."""

        def reinstated(job: Job) -> Job:
            failures, losses = limits.by_task.get(job.task, (limits.failures, limits.losses))
            return replace(
                job,
                state=State.AVAILABLE,
                due_at=self._clock(),
                follow_up=False,
                quarantine_reason=None,
                quarantined_at=None,
                failure_limit=job.failures + failures,
                loss_limit=job.losses + losses,
            )

        return self._operate(Verb.REINSTATE, job_ids, reinstated, authority=authority, by=by)

    def discard(self, job_ids: Sequence[int], *, authority: Authority) -> Answer:
        """Give quarantined jobs up for good."""
        require_system(authority, Verb.DISCARD)
        with self._turn:
            now = self._clock()
            return self._act(
                Verb.DISCARD, job_ids, lambda job: moves.finish(job, State.DISCARDED, now, worker_id=None)
            )

    def quarantine(self, job_ids: Sequence[int], *, authority: Authority, by: str) -> Answer:
        """Hold waiting jobs back until somebody reinstates them."""
        return self._operate(
            Verb.QUARANTINE,
            job_ids,
            lambda job: replace(
                job,
                state=State.QUARANTINED,
                quarantine_reason=str(QuarantineReason.OPERATOR),
                quarantined_at=self._clock(),
            ),
            authority=authority,
            by=by,
        )

    def reprioritise(self, job_ids: Sequence[int], *, authority: Authority, by: str, priority: int) -> Answer:
        """Give waiting jobs another priority, from -100 to 100, higher first. Raises InvalidJob."""
        if not -100 <= priority <= 100:
            raise InvalidJob(f"priority is a whole number from -100 to 100, not {priority}")
        return self._operate(
            Verb.REPRIORITISE,
            job_ids,
            lambda job: replace(job, priority=priority),
            authority=authority,
            by=by,
            detail=lambda job: {"priority": priority, "priority_before": job.priority},
        )

    def reschedule(self, job_ids: Sequence[int], *, authority: Authority, by: str, due_at: datetime) -> Answer:
        """Set when waiting jobs are due, an aware time. Raises InvalidJob."""
        if due_at.utcoffset() is None:
            raise InvalidJob("due_at must be an aware datetime: add a time zone")

        def rescheduled(job: Job) -> Job:
            state = moves.leads_to(job, Verb.RESCHEDULE)
            assert state is not None
            return replace(job, due_at=due_at, state=state)

        return self._operate(
            Verb.RESCHEDULE,
            job_ids,
            rescheduled,
            authority=authority,
            by=by,
            detail=lambda job: {"due_at": due_at.isoformat(), "due_before": job.due_at.isoformat()},
        )

    def rerun(
        self, job_id: int, *, authority: Authority, limits: Limits, revision: TaskConfig | None = None
    ) -> Enqueued | Unchanged:
        """Run a finished job once more, as a new job of the same owner and key, and with no watchers.

        By the configuration that it had, or by the `revision` given.
        """
        require_system(authority, Verb.RERUN)
        with self._turn:
            job = self._shelf.get(job_id)
            if job is None:
                return Unchanged(job_id, Why.MISSING)
            if job.state not in FINAL:
                return Unchanged(job_id, Why.STATE, job.state)
            if (holder := self._shelf.holder(job.key)) is not None:
                return Unchanged(job_id, Why.KEY_HELD, job.state, holder.id)
            now = self._clock()
            failures, losses = limits.by_task.get(job.task, (limits.failures, limits.losses))
            self._last_id += 1
            new = Job(
                id=self._last_id,
                queue=job.queue,
                task=job.task,
                args=job.args,
                state=State.AVAILABLE,
                priority=job.priority,
                due_at=now,
                enqueued_at=now,
                owner=job.owner,
                tenant=job.tenant,
                key=job.key,
                tags=job.tags,
                meta=job.meta,
                rerun_of=job.id,
                revision_id=job.revision_id if revision is None else self._revision(revision),
                failure_limit=failures,
                loss_limit=losses,
            )
            self._put(new)
            return Enqueued(new.id, new.state, now)

    def pause(self, queue: str, *, authority: Authority, by: str, reason: str) -> bool:
        """Stop a queue from being claimed; False where it is paused already. Raises InvalidJob."""
        require_system(authority, "pause")
        check_queue(queue)
        with self._turn:
            return self._paused.setdefault(queue, entry := (self._clock(), by, reason)) is entry

    def resume(self, queue: str, *, authority: Authority) -> bool:
        """Let a queue be claimed again; False where it is not paused."""
        require_system(authority, "resume")
        with self._turn:
            if self._paused.pop(queue, None) is None:
                return False
            self._wake(queue, 100)
            return True

    def limit(
        self, queue: str, *, authority: Authority, concurrency: int | None, sequential: bool = False
    ) -> None:
        """Say how many jobs of a queue run at once, None for as many as its workers can; `sequential`: in order.

        Jobs that run already go on and count; in a sequential queue a retry holds the line. Raises InvalidJob.
        """
        require_system(authority, "limit")
        check_queue(queue)
        if concurrency is not None and concurrency < 1:
            raise InvalidJob(f"a limit is a whole number from 1 on, not {concurrency}")
        if sequential and concurrency != 1:
            raise InvalidJob("a sequential queue runs one job at a time: its limit is 1")
        with self._turn:
            self._limits.pop(queue, None)
            if concurrency is not None:
                self._limits[queue] = concurrency, sequential
            self._wake(queue, 100)

    def _operate(
        self,
        verb: Verb,
        job_ids: Sequence[int],
        change: Change,
        *,
        authority: Authority,
        by: str,
        detail: Callable[[Job], dict[str, Any]] = lambda job: {},
    ) -> Answer:
        """A verb that leaves events."""
        require_system(authority, verb)
        with self._turn:
            before = {job_id: self._shelf.live.get(job_id) for job_id in job_ids}
            answer = self._act(verb, job_ids, change)
            for changed in answer.changed:
                job = before[changed.id]
                assert job is not None
                self._tell(job.id, verb.value, {"by": by, "from": job.state, **detail(job)})
        return answer

    def _act(self, verb: Verb, job_ids: Sequence[int], change: Change, *, owner: str | None = None) -> Answer:
        changed, unchanged = [], []
        actor = Actor.OPERATOR if owner is None else Actor.OWNER
        for job_id in sorted(set(job_ids)):
            job = self._shelf.get(job_id)
            if job is None or not job.visible(owner):
                unchanged.append(Unchanged(job_id, Why.MISSING))
            elif moves.leads_to(job, verb, by=actor) is None:
                unchanged.append(Unchanged(job_id, Why.STATE, job.state))
            else:
                after = change(job)
                try:
                    self._put(after)
                except KeyTaken:
                    holder = self._shelf.holder(job.key)
                    unchanged.append(
                        Unchanged(job_id, Why.KEY_HELD, job.state, None if holder is None else holder.id)
                    )
                else:
                    changed.append(Changed(job_id, job.state, after.state))
        return Answer(tuple(changed), tuple(unchanged))
