"""Random verbs by several workers, owners and operators, against a model: in memory and in PostgreSQL.

`SHIFTBOSS_STATEFUL=20` runs twenty times as many examples, and others each time.
"""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from shiftboss import Owner
from shiftboss.queue.authority import Authority, System
from shiftboss.queue.contract import Lease, Note, NoteKind, Registration, Settlement
from shiftboss.queue.errors import KeyHeld
from shiftboss.queue.jobs import Answer, Enqueued, Limits, NewJob, OnConflict, Why
from shiftboss.queue.keys import Scope, scoped_key
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.states import QuarantineReason, State
from tests.clients.records import MemoryRecord, Record, SqlRecord
from tests.store import model
from tests.store.making import rows
from tests.store.model import BACKOFF_SECONDS, LEASE_SECONDS, SNOOZE_SECONDS, Job, Model

SYSTEM = System()
TASKS = ("shop.tasks.pack", "shop.tasks.send")
QUEUES = ("wide", "narrow", "line")
PEOPLE: dict[str, Authority] = {"kim": Owner("kim"), "sam": Owner("sam"), "system": SYSTEM}
LIMITS = Limits(failures=model.REINSTATED_FAILURES, losses=model.REINSTATED_LOSSES, by_task={})
STEP_SECONDS = 600
"""The steps of time never meet a due time, an expiry or a deadline: real seconds pass too."""
OUTCOMES: dict[str, Outcome] = {
    "complete": Done('{"sum": 3}', 12),
    "fail": Failed("handler_raised", "ValueError", "no", "1b0c9e4f", "Traceback…", BACKOFF_SECONDS, 12),
    "release": Released("shutdown"),
    "snooze": Snoozed(SNOOZE_SECONDS, 12),
    "discard": Discarded("withdrawn", 12),
    "quarantine": Quarantined(QuarantineReason.INVALID_ARGUMENTS, "they do not fit"),
    "reap_own": Lost(alone=True, suspect=True, code="executor_died", message="killed", evidence="{}"),
}

people = st.sampled_from(sorted(PEOPLE))
which = st.integers(0, 30)
some = st.lists(which, min_size=1, max_size=3)
workers = st.integers(0, 2)
jobs = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "task": st.sampled_from(TASKS),
        "priority": st.sampled_from((-1, 0, 0, 5)),
        "due": st.sampled_from((None, None, 500)),
        "deadline": st.sampled_from((None, None, None, 1300)),
        "key": st.sampled_from((None, None, "a", "b")),
        "scope": st.sampled_from(Scope),
        "on_conflict": st.sampled_from(OnConflict),
        "follow_up": st.booleans(),
        "watchers": st.sampled_from(((), (), ("sam",), ("eva", "kim"))),
        "failure_limit": st.integers(1, 2),
        "loss_limit": st.integers(1, 2),
    }
)


class Shop(RuleBasedStateMachine):
    """Everything that happens, to the record and to the model alike."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record
        self.model = Model()
        self.leases: list[tuple[Lease, int]] = []

    @initialize()
    def open(self) -> None:
        """Three workers, a queue with a limit, a sequential one."""
        self.workers = [
            self.record.register(_registration(pid), authority=SYSTEM, tasks=TASKS) for pid in (1, 2, 3)
        ]
        self.record.limit("narrow", authority=SYSTEM, concurrency=2)
        self.record.limit("line", authority=SYSTEM, concurrency=1, sequential=True)
        self.model.limits["narrow"] = 2
        self.model.sequential.add("line")

    def ids(self, places: list[int]) -> list[int]:
        """Jobs that are there, by place; a place of nobody's is nobody."""
        known = sorted(self.model.jobs)
        return sorted({known[place % len(known)] if place < 25 and known else 10**12 for place in places})

    # -- clients -------------------------------------------------------------------------------------------

    @rule(who=people, job=jobs)
    def enqueue(self, who: str, job: dict[str, Any]) -> None:
        """A client enqueues one job."""
        self._enqueued(who, [job], lambda given, authority: [self.record.enqueue(given[0], authority=authority)])

    @rule(who=people, many=st.lists(jobs, min_size=2, max_size=3))
    def enqueue_many(self, who: str, many: list[dict[str, Any]]) -> None:
        """A client enqueues several jobs, all or none."""
        self._enqueued(who, many, lambda given, authority: self.record.enqueue_many(given, authority=authority))

    def _enqueued(
        self, who: str, asked: list[dict[str, Any]], call: Callable[[list[NewJob], Authority], list[Enqueued]]
    ) -> None:
        authority = PEOPLE[who]
        given = [self._new_job(job) for job in asked]
        answers: list[Enqueued] | None
        refused = None
        # What comes first of those with one key is what the others meet.
        try:
            answers = call(given, authority)
        except KeyHeld as error:
            answers, refused = None, error
        if answers is None:
            assert refused is not None
            self._refused(asked, authority, refused)
            return
        order = sorted(
            range(len(asked)), key=lambda place: (asked[place]["key"] is not None, _key(asked[place], authority))
        )
        for place in order:
            self._answered(asked[place], authority, answers[place])

    def _new_job(self, job: dict[str, Any]) -> NewJob:
        now = datetime.now(UTC) + self._ahead()
        return NewJob(
            queue=job["queue"],
            task=job["task"],
            args='{"args": [], "kwargs": {}}',
            failure_limit=job["failure_limit"],
            loss_limit=job["loss_limit"],
            priority=job["priority"],
            due_at=None if job["due"] is None else now + timedelta(seconds=job["due"]),
            deadline=None if job["deadline"] is None else now + timedelta(seconds=job["deadline"]),
            watchers=job["watchers"],
            key=job["key"],
            key_scope=job["scope"],
            on_conflict=job["on_conflict"],
            follow_up=job["follow_up"] and job["key"] is not None,
        )

    def _refused(self, asked: list[dict[str, Any]], authority: Authority, error: KeyHeld) -> None:
        """One of them meets a holder that it may not pass: a live one, or one of its own batch, which is gone."""
        for job in asked:
            key = _key(job, authority) or None
            meets, met = self.model.meets(key, _owner(authority), str(job["on_conflict"]), job["follow_up"])
            if meets == "held" and met.id == error.holder:
                return
        keys = [_key(job, authority) for job in asked if job["key"] is not None]
        assert len(set(keys)) < len(keys)

    def _answered(self, job: dict[str, Any], authority: Authority, answer: Enqueued) -> None:
        key = _key(job, authority) or None
        owner = _owner(authority)
        meets, met = self.model.meets(key, owner, str(job["on_conflict"]), job["follow_up"])
        if meets == "existing":
            assert (answer.id, answer.existing, str(answer.state)) == (met.id, True, met.state)
            return
        follow_up = met
        if meets == "replace":
            follow_up = met.follow_up
            assert self.model.cancel(met.id, None, "superseded") == ("changed", "cancelled")
        assert meets in ("new", "replace")
        assert not answer.existing
        due = self.model.moment(job["due"] or 0)
        state = "scheduled" if follow_up or job["due"] else "available"
        assert str(answer.state) == state
        deadline = None if job["deadline"] is None else self.model.now + job["deadline"]
        self.model.add(
            Job(
                id=answer.id,
                owner=owner,
                key=key,
                due=due,
                deadline=deadline,
                state=state,
                follow_up=follow_up,
                **{name: job[name] for name in ("queue", "task", "watchers", "priority")},
                **{name: job[name] for name in ("failure_limit", "loss_limit")},
            )
        )

    # -- workers -------------------------------------------------------------------------------------------

    @rule(
        worker=workers,
        queue=st.sampled_from(QUEUES),
        tasks=st.sampled_from((TASKS, TASKS, TASKS[:1])),
        limit=st.integers(1, 3),
    )
    def claim(self, worker: int, queue: str, tasks: tuple[str, ...], limit: int) -> None:
        """A worker claims."""
        expected = self.model.claimable(queue, tasks, limit)
        jobs = self.record.claim(
            authority=SYSTEM,
            worker_id=self.workers[worker],
            queue=queue,
            tasks=tasks,
            limit=limit,
            lease_seconds=LEASE_SECONDS,
        )
        known = [self.model.jobs[job.id] for job in jobs]
        # Of equals the record chooses.
        assert [self.model.order(job) for job in known] == [self.model.order(job) for job in expected]
        assert all(job.queue == queue and job.state == "available" and job.task in tasks for job in known)
        for claimed, job in zip(jobs, known, strict=True):
            lease = self.model.claimed(job, self.workers[worker])
            assert claimed.lease == lease
            assert (claimed.failures, claimed.losses, claimed.suspect) == (job.failures, job.losses, job.suspect)
            assert (None if claimed.checkpoint is None else json.loads(claimed.checkpoint)) == (
                None if job.checkpoint is None else json.loads(job.checkpoint)
            )
            self.leases.append((claimed.lease, self.workers[worker]))

    def lease(self, place: int, stranger: int | None) -> tuple[Lease, int]:
        """A lease that was given once, mostly a late one, and who writes under it."""
        lease, worker = self.leases[-1 - place % len(self.leases)]
        return lease, worker if stranger is None else self.workers[stranger]

    @precondition(lambda self: self.leases)
    @rule(place=which, stranger=st.sampled_from((None, None, None, 0, 1)), verb=st.sampled_from(sorted(OUTCOMES)))
    def report(self, place: int, stranger: int | None, verb: str) -> None:
        """Somebody reports the end of a run, mostly who runs it."""
        lease, worker = self.lease(place, stranger)
        expected = self.model.report(tuple(lease), worker, verb)
        answer = self.record.report([(lease, OUTCOMES[verb])], authority=SYSTEM, worker_id=worker)
        assert answer == Settlement(**{expected: {lease}})

    @precondition(lambda self: self.leases)
    @rule(place=which, stranger=st.sampled_from((None, None, None, 0, 1)))
    def heartbeat(self, place: int, stranger: int | None) -> None:
        """Somebody renews a lease."""
        lease, worker = self.lease(place, stranger)
        expected, cause = self.model.heartbeat(tuple(lease), worker)
        answer = self.record.heartbeat([lease], authority=SYSTEM, worker_id=worker, lease_seconds=LEASE_SECONDS)
        assert (answer.renewed, answer.lost) == (({lease}, set()) if expected == "renewed" else (set(), {lease}))
        assert answer.cancelled == ({} if cause is None else {lease: cause})

    @precondition(lambda self: self.leases)
    @rule(place=which, stranger=st.sampled_from((None, None, 0)), kind=st.sampled_from(NoteKind), n=which)
    def note(self, place: int, stranger: int | None, kind: NoteKind, n: int) -> None:
        """A handler tells something."""
        lease, worker = self.lease(place, stranger)
        expected = self.model.note(tuple(lease), worker, str(kind), str(n))
        answer = self.record.note([(lease, Note(kind, str(n), "packed"))], authority=SYSTEM, worker_id=worker)
        assert answer == Settlement(**{expected: {lease}})

    # -- people --------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.jobs)
    @rule(who=people, places=some)
    def cancel(self, who: str, places: list[int]) -> None:
        """A person or the system ends jobs."""
        owner = _owner(PEOPLE[who])
        expected = {job_id: self.model.cancel(job_id, owner) for job_id in self.ids(places)}
        self._same(self.record.cancel(self.ids(places), authority=PEOPLE[who]), expected)

    @precondition(lambda self: self.model.jobs)
    @rule(
        verb=st.sampled_from(("reinstate", "expedite", "reschedule", "discard", "quarantine", "reprioritise")),
        places=some,
        value=st.sampled_from((-1, 0, 5)),
    )
    def operate(self, verb: str, places: list[int], value: int) -> None:
        """An operator acts."""
        how: dict[str, Any] = {} if verb == "discard" else {"by": "kim"}
        if verb in ("reinstate", "expedite", "reschedule"):
            places = places[:1]  # which of several is due first, the record chooses
        if verb == "reprioritise":
            how["priority"] = value
        if verb == "reschedule":
            value = 100 * value + 50
            how["due_at"] = datetime.now(UTC) + self._ahead() + timedelta(seconds=value)
        if verb == "reinstate":
            how["limits"] = LIMITS
        ids = self.ids(places)
        expected = {job_id: self.model.operate(verb, job_id, value) for job_id in ids}
        self._same(getattr(self.record, verb)(ids, authority=SYSTEM, **how), expected)

    def _ahead(self) -> timedelta:
        return getattr(self.record, "ahead", timedelta()) if isinstance(self.record, MemoryRecord) else timedelta()

    def _same(self, answer: Answer, expected: dict[int, tuple[str, str | None]]) -> None:
        said = {job.id: ("changed", str(job.after)) for job in answer.changed}
        said |= {job.id: (str(job.why), None if job.state is None else str(job.state)) for job in answer.unchanged}
        assert said == expected

    @precondition(lambda self: self.model.jobs)
    @rule(place=which)
    def rerun(self, place: int) -> None:
        """An operator runs a finished job again."""
        [job_id] = self.ids([place])
        answer = self.record.rerun(job_id, authority=SYSTEM, limits=LIMITS)
        job = self.model.jobs.get(job_id)
        if job is None or job.live or self.model.holder(job.key) is not None:
            why = Why.MISSING if job is None else Why.STATE if job.live else Why.KEY_HELD
            assert (answer.id, answer.why) == (job_id, why)
            return
        assert answer.state is State.AVAILABLE
        self.model.add(
            Job(
                id=answer.id,
                queue=job.queue,
                task=job.task,
                owner=job.owner,
                watchers=(),
                key=job.key,
                priority=job.priority,
                due=self.model.moment(),
                deadline=None,
                failure_limit=LIMITS.failures,
                loss_limit=LIMITS.losses,
                state="available",
                rerun_of=job.id,
            )
        )

    @rule(queue=st.sampled_from(QUEUES), stop=st.booleans())
    def pause(self, queue: str, stop: bool) -> None:
        """An operator pauses or resumes a queue."""
        was = queue in self.model.paused
        if stop:
            assert self.record.pause(queue, authority=SYSTEM, by="kim", reason="x") == (not was)
            self.model.paused.add(queue)
        else:
            assert self.record.resume(queue, authority=SYSTEM) == was
            self.model.paused.discard(queue)

    @rule(concurrency=st.sampled_from((None, 1, 2, 3)))
    def limit(self, concurrency: int | None) -> None:
        """An operator changes how many jobs of the narrow queue run at once."""
        self.record.limit("narrow", authority=SYSTEM, concurrency=concurrency)
        self.model.limits.pop("narrow", None)
        if concurrency is not None:
            self.model.limits["narrow"] = concurrency

    # -- upkeep and time -----------------------------------------------------------------------------------

    @rule(steps=st.integers(1, 2))
    def later(self, steps: int) -> None:
        """Time passes."""
        self.record.later(steps * STEP_SECONDS)
        self.model.now += steps * STEP_SECONDS

    @rule()
    def stage(self) -> None:
        """Somebody stages."""
        assert self.record.stage(authority=SYSTEM) == self.model.stage()

    @rule()
    def reap(self) -> None:
        """Somebody reaps."""
        assert sorted(self.record.reap(authority=SYSTEM)) == self.model.reap()

    @rule()
    def expire(self) -> None:
        """Somebody ends what is past its deadline."""
        assert self.record.expire(authority=SYSTEM) == self.model.expire()

    # -- what always holds ---------------------------------------------------------------------------------

    @invariant()
    def agree(self) -> None:
        """Record and model say the same of every job."""
        self.model.check()
        assert self.snapshot() == self.model.told()

    def teardown(self) -> None:
        """And of what is kept beside the jobs, as their owners see it."""
        for job in self.model.jobs.values():
            for who, authority in PEOPLE.items():
                seen = job.seen_by(None if who == "system" else who)
                assert (self.record.job(authority=authority, job_id=job.id) is not None) == seen
                attempts = self.record.attempts(authority=authority, job_id=job.id)
                told = [(row.fence, row.worker_id, row.outcome) for row in attempts]
                assert told == ([one[:3] for one in job.attempts] if seen else [])
                events = [row.kind for row in self.record.events(authority=authority, job_id=job.id)]
                assert events == (job.events if seen else [])

    def snapshot(self) -> list[tuple[Any, ...]]:
        """What the record says of every job."""
        raise NotImplementedError


class ShopInMemory(Shop):
    """The record in memory."""

    def __init__(self) -> None:
        super().__init__(MemoryRecord())

    def snapshot(self) -> list[tuple[Any, ...]]:
        """By the reads."""
        found = [self.record.job(authority=SYSTEM, job_id=job_id) for job_id in sorted(self.model.jobs)]
        return [
            (
                job.id,
                str(job.state),
                job.fence,
                job.worker_id,
                job.failures,
                job.losses,
                job.failure_limit,
                job.loss_limit,
                job.suspect,
                job.priority,
                job.cancel_cause,
                job.quarantine_reason,
                job.follow_up,
                job.owner,
                job.key,
                job.rerun_of,
            )
            for job in found
        ]


COLUMNS = """id, state, fence, worker_id, failures, losses, failure_limit, loss_limit, suspect, priority,
    cancel_cause, quarantine_reason, {follow_up}, owner, key, rerun_of"""
SNAPSHOT = (
    f"select {COLUMNS.format(follow_up='follow_up')} from shiftboss_job"
    f" union all select {COLUMNS.format(follow_up='false')} from shiftboss_finished order by id"
)


class ShopInPostgres(Shop):
    """The record in PostgreSQL: each example in one transaction, which is rolled back."""

    def __init__(self) -> None:
        super().__init__(SqlRecord())
        self._transaction = transaction.atomic()
        self._transaction.__enter__()

    def snapshot(self) -> list[tuple[Any, ...]]:
        """In one question."""
        return rows(SNAPSHOT)

    def teardown(self) -> None:
        """Leave nothing."""
        try:
            super().teardown()
        finally:
            if not connection.needs_rollback:
                transaction.set_rollback(True)
            self._transaction.__exit__(None, None, None)


def _registration(pid: int) -> Registration:
    return Registration(
        pool="default",
        host="web-1",
        pid=pid,
        code_version=None,
        queues=QUEUES,
        processes=1,
        threads=8,
        lease_seconds=LEASE_SECONDS,
        heartbeat_seconds=5,
    )


def _owner(authority: Authority) -> str | None:
    return authority.id if isinstance(authority, Owner) else None


def _key(job: dict[str, Any], authority: Authority) -> str:
    return "" if job["key"] is None else scoped_key(job["key"], authority=authority, scope=job["scope"])


TIMES = int(os.environ.get("SHIFTBOSS_STATEFUL", "0"))


def profile(examples: int) -> settings:
    """The same examples each time, but in the big run."""
    return settings(
        max_examples=examples * max(TIMES, 1),
        stateful_step_count=50,
        derandomize=not TIMES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.requirement("N3", "N9", "N10", "L2", "L4", "L5", "L6", "N5", "N6", "N16")
def test_the_record_in_memory_does_what_the_model_does() -> None:
    run_state_machine_as_test(ShopInMemory, settings=profile(60))


@pytest.mark.requirement("N3", "N9", "N10", "L2", "L4", "L5", "L6", "N5", "N6", "N16")
def test_the_record_in_postgres_does_what_the_model_does() -> None:
    run_state_machine_as_test(ShopInPostgres, settings=profile(15))
