"""What workers do: announce themselves, claim, heartbeat, report how each run ended."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.clients.memory import moves
from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.clients.memory.record import Record
from shiftboss.queue.contract import (
    Claimed,
    Heartbeat,
    Known,
    Lease,
    Mark,
    Note,
    NoteKind,
    Registration,
    Settlement,
    WorkerStatus,
)
from shiftboss.queue.jobs import AttemptRow
from shiftboss.queue.outcomes import Done, Failed, Outcome
from shiftboss.queue.states import State


class Leasing(Record):
    """The verbs of workers."""

    def register(
        self,
        registration: Registration,
        *,
        authority: Authority,
        tasks: Sequence[str],
        worker_id: int | None = None,
    ) -> int:
        """Announce a worker; with the id that it had it keeps that one."""
        require_system(authority, "register")
        with self._turn:
            if worker_id is None:
                self._last_worker_id += 1
                worker_id = self._last_worker_id
            self._workers[worker_id] = registration, None
            return worker_id

    def worker_heartbeat(self, status: WorkerStatus, *, authority: Authority, worker_id: int) -> Known | None:
        """Say that the worker lives and what it does; None where the record does not know it."""
        require_system(authority, "worker heartbeat")
        with self._turn:
            if worker_id not in self._workers:
                return None
            self._workers[worker_id] = self._workers[worker_id][0], status
            return Known()  # nobody gives orders here: who runs the worker has it in hand

    def waiting_tasks(self, *, authority: Authority, queues: Sequence[str], tasks: Sequence[str]) -> list[str]:
        """Tasks that wait in these queues and are not among `tasks`."""
        require_system(authority, "waiting tasks")
        with self._turn:
            waiting = {job.task for queue in queues for job in self._shelf.available(queue, None)}
        return sorted(waiting - set(tasks))[:20]

    def revisions(self, revisions: Sequence[int], *, authority: Authority) -> dict[int, str]:
        """The configurations behind these revisions, as far as they are known."""
        require_system(authority, "revisions")
        with self._turn:
            return {number: self._revisions[number] for number in revisions if number in self._revisions}

    def claim(
        self,
        *,
        authority: Authority,
        worker_id: int,
        queue: str,
        tasks: Sequence[str],
        limit: int,
        lease_seconds: float,
        after: Mark | None = None,
    ) -> list[Claimed]:
        """Lease up to `limit` available jobs of a queue, in the order in which they are to run.

        With `after`, only that priority and only past that mark, but for a queue with a limit.
        """
        require_system(authority, "claim")
        known = set(tasks)
        with self._turn:
            now = self._clock()
            if queue in self._paused:
                return []
            picked: list[Job] = []
            place = None if after is None or queue in self._limits else (-after.priority, after.due_at, after.id)
            room = min(limit, self._room(queue))
            for job in self._line(queue) or self._shelf.available(queue, place):
                if len(picked) >= room:
                    break
                if job.deadline is not None and job.deadline <= now:
                    continue
                if job.task in known and job.state is State.AVAILABLE:
                    picked.append(moves.claim(job, worker_id=worker_id, lease_seconds=lease_seconds, now=now))
                elif self._sequential(queue):
                    break  # who is at the head and cannot be had now is waited for, never passed
            for job in picked:
                self._put(job)
                if self._sequential(queue):
                    self._lines[queue] = job.id
            return [job.claimed() for job in picked]

    def _room(self, queue: str) -> int:
        """How many more jobs of the queue may run."""
        if (limited := self._limits.get(queue)) is None:
            return sys.maxsize
        return max(0, limited[0] - len(self._shelf.running[queue]))

    def _sequential(self, queue: str) -> bool:
        return self._limits.get(queue, (0, False))[1]

    def _line(self, queue: str) -> list[Job]:
        """In a sequential queue the job that has begun and not yet come to rest: it alone is next."""
        holder = self._lines.get(queue) if self._sequential(queue) else None
        return [] if holder is None else [self._shelf.live[holder]]

    def heartbeat(
        self, leases: Sequence[Lease], *, authority: Authority, worker_id: int, lease_seconds: float
    ) -> Heartbeat:
        """Prolong leases, and learn whose end has been asked for. Lost ones are recorded as rejected."""
        require_system(authority, "heartbeat")
        renewed: dict[Lease, str | None] = {}
        with self._turn:
            now = self._clock()
            for lease in leases:
                job = self._held(lease, worker_id)
                if job is not None:
                    self._put(replace(job, lease_expires_at=now + timedelta(seconds=lease_seconds)))
                    renewed[lease] = job.cancel_cause
                elif not self._ended_by(lease, worker_id):
                    self._reject(lease, worker_id, "heartbeat")
        cancelled = {lease: cause for lease, cause in renewed.items() if cause is not None}
        lost = frozenset(leases) - frozenset(renewed)
        return Heartbeat(renewed=frozenset(renewed), busy=frozenset(), lost=lost, cancelled=cancelled)

    def report(
        self, items: Sequence[tuple[Lease, Outcome]], *, authority: Authority, worker_id: int
    ) -> Settlement:
        """End runs as their worker says they ended, of whatever kinds.

        The same end of the same run once more is settled as it was the first time; any other write under a lease
        that is not held is lost: it changes nothing, and is kept as an event `write_rejected`.
        """
        require_system(authority, "report")
        settlement = Settlement()
        with self._turn:
            for lease, outcome in items:
                outcome = _storable(outcome)
                _, name, trace = moves.OUTCOMES[type(outcome)]
                if (job := self._held(lease, worker_id)) is not None:
                    after, attempt = moves.end_run(job, outcome, self._clock())
                    if attempt is not None:
                        self._shelf.attempts[job.id].append(attempt)
                    self._put(after)
                elif not self._settled(lease, worker_id, outcome, trace):
                    self._reject(lease, worker_id, name)
                    settlement.lost.add(lease)
                    continue
                settlement.settled.add(lease)
        return settlement

    def note(self, items: Sequence[tuple[Lease, Note]], *, authority: Authority, worker_id: int) -> Settlement:
        """Keep what running handlers tell, in the order given; of progress and checkpoints the last counts.

        A lease that is not held is lost, and that is recorded once for each kind of note that came under it.
        """
        require_system(authority, "note")
        settlement = Settlement()
        with self._turn:
            refused = set()
            for lease, note in items:
                if (job := self._held(lease, worker_id)) is None:
                    refused.add((lease, note.kind))
                    settlement.lost.add(lease)
                    continue
                settlement.settled.add(lease)
                if note.kind is NoteKind.EVENT:
                    data = {"name": note.name, "data": json.loads(note.data)}
                    self._tell(job.id, "event", data, worker_id=worker_id, fence=lease.fence)
                else:
                    told: dict[str, Any] = {str(note.kind): note.data}
                    self._put(replace(job, **told))
            for lease, kind in sorted(refused):
                self._reject(lease, worker_id, str(kind))
        return settlement

    def _held(self, lease: Lease, worker_id: int) -> Job | None:
        job = self._shelf.live.get(lease.job_id)
        return job if job is not None and job.held(lease, worker_id, self._clock()) else None

    def _settled(self, lease: Lease, worker_id: int, outcome: Outcome, trace: str) -> bool:
        """Whether the record holds this end of this run already."""
        job = self._shelf.finished.get(lease.job_id)
        if job is not None and (job.fence, job.worker_id, str(job.state)) == (lease.fence, worker_id, trace):
            return not isinstance(outcome, Done) or _same(job.result, outcome.result)
        traces = {trace}
        if trace in {"released", "snoozed", "discarded", "quarantined"}:
            traces.add("cancelled")
        return any(attempt.outcome in traces for attempt in self._attempts_of(lease, worker_id))

    def _ended_by(self, lease: Lease, worker_id: int) -> bool:
        """Whether this worker itself has ended the run: then a heartbeat is not late, but needless."""
        job = self._shelf.finished.get(lease.job_id)
        if job is not None and (job.fence, job.worker_id) == (lease.fence, worker_id):
            return True
        return any(
            attempt.outcome != "lost" or attempt.error_code != moves.EXPIRED.code
            for attempt in self._attempts_of(lease, worker_id)
        )

    def _attempts_of(self, lease: Lease, worker_id: int) -> list[AttemptRow]:
        attempts = self._shelf.attempts.get(lease.job_id, ())
        return [one for one in attempts if (one.fence, one.worker_id) == (lease.fence, worker_id)]

    def _reject(self, lease: Lease, worker_id: int, verb: str) -> None:
        job = self._shelf.get(lease.job_id)
        data = {
            "verb": verb,
            "fence_offered": lease.fence,
            "fence_held": job.fence if job else None,
            "worker_held": job.worker_id if job else None,
            "state": job.state if job else None,
        }
        self._tell(lease.job_id, "write_rejected", data, worker_id=worker_id, fence=lease.fence)


def _storable(outcome: Outcome) -> Outcome:
    """The outcome, or a failure where its result is no JSON."""
    if not isinstance(outcome, Done) or outcome.result is None:
        return outcome
    try:
        json.loads(outcome.result)
    except ValueError as error:
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        code = "result_not_storable"
        return Failed(code, kind, str(error)[:500], code, "", 60.0, outcome.run_ms)
    return outcome


def _same(one: str | None, other: str | None) -> bool:
    """Whether two results are the same JSON."""
    if one is None or other is None:
        return one is other
    return bool(json.loads(one) == json.loads(other))
