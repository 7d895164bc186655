"""A keeper that dies before and after each statement with which it claims, prolongs, tells and ends.

Two statements that follow each other in a verb share the point between them. Of each group all keepers die at the
same time, each with a queue of its own; then one that lives does what is left.
"""

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from shiftboss.queue.authority import System
from shiftboss.queue.contract import Lease
from shiftboss.queue.states import FINAL, State
from shiftboss.queue.store import lease, queues, read, upkeep
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.statement import run
from tests.faults.audit import audit
from tests.faults.kill_points import Keepers, Mortal, Point
from tests.faults.plain_jobs import plain_config, put
from tests.runtime.programs import House, attempts, job
from tests.store.making import a_worker, claimed
from tests.waiting import wait_for

SYSTEM = System()
LOST = "lost lease_expired"
ANY = "any"
UNLIMITED = Limit()


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A point, a job that brings the keeper there, and how the record says that the keeper's last attempt ended.

    `told` None: the keeper held no lease. `by`: what has to happen before it gets there, of the two below.
    """

    point: Point
    told: str | None = LOST
    task: str = "work"
    args: tuple[Any, ...] = ()
    jobs: int = 1
    limit: Limit = UNLIMITED
    final: State = State.COMPLETED
    config: dict[str, float] | None = None
    refused: int = 0

    @property
    def gate(self) -> str:
        """What its handler waits for."""
        return f"gate-{'-'.join(map(str, self.point))}"


def both(verb: str, told: str, **how: Any) -> list[Trial]:
    """Before the verb's one statement, where the run is lost, and after it, where it has been told."""
    return [Trial(Point(verb, verb, "before"), **how), Trial(Point(verb, verb), told, **how)]


CLAIMS = [
    Trial(Point("claim", "claim", "before"), None),
    Trial(Point("claim", "claim")),
    *(Trial(Point("claim", "claim_after", side), ANY, jobs=60) for side in ("before", "after")),
    Trial(Point("claim", "limit_of"), None, jobs=3, limit=Limit(2)),
    Trial(Point("claim", "claim_limited"), jobs=3, limit=Limit(2)),
    Trial(Point("claim", "claim_sequential", "before"), None, jobs=3, limit=Limit(1, sequential=True)),
    Trial(Point("claim", "claim_sequential"), jobs=3, limit=Limit(1, sequential=True)),
    Trial(Point("register", "register_worker"), None),
]

PATIENT = {"lease_seconds": 600.0, "heartbeat_seconds": 200.0}
BEATING = {"lease_seconds": 600.0}
BEATS = [
    *(Trial(Point("heartbeat", "heartbeat", side), args=(1.0,)) for side in ("before", "after")),
    *(
        Trial(Point("worker_heartbeat", "worker_heartbeat", side, 2), ANY, args=(1.0,))
        for side in ("before", "after")
    ),
    Trial(Point("heartbeat", "ended", "before"), task="wait", config=BEATING),
    Trial(Point("heartbeat", "ended"), task="wait", config=BEATING),
    Trial(Point("heartbeat", "number_events"), task="wait", config=BEATING),
    Trial(Point("heartbeat", "commit", "before"), task="wait", config=BEATING),
    Trial(Point("heartbeat", "commit"), task="wait", config=BEATING, refused=1),
]

ENDS = [
    *both("complete", "completed"),
    *both("fail", "failed handler_raised", task="fail"),
    *both("snooze", "snoozed", task="put_off"),
    *both("discard", "discarded discarded", task="give_up", final=State.DISCARDED),
    *both("quarantine", "quarantined invalid_arguments", args=(1, 2, 3), final=State.QUARANTINED),
    *both("reap_own", "lost executor_died", task="die"),
    *both("release", "released shutdown", task="listen"),
]

REFUSALS = [
    Trial(Point("complete", "lock", "before"), task="wait", config=PATIENT),
    Trial(Point("complete", "lock"), task="wait", config=PATIENT),
    Trial(Point("complete", "complete", "after", 2), task="wait", config=PATIENT),
    Trial(Point("complete", "settled"), task="wait", config=PATIENT),
    Trial(Point("complete", "number_events"), task="wait", config=PATIENT),
    Trial(Point("complete", "reject"), task="wait", config=PATIENT),
    Trial(Point("complete", "commit"), task="wait", config=PATIENT, refused=1),
]

NOTES = [
    Trial(Point("note", "lock", "before"), task="tell"),
    Trial(Point("note", "lock"), task="tell"),
    Trial(Point("note", "number_events_now"), task="tell"),
    Trial(Point("note", "progress"), task="tell"),
    Trial(Point("note", "checkpoint"), task="tell"),
    Trial(Point("note", "event"), task="tell"),
    Trial(Point("note", "commit"), task="tell"),
]

UPKEEP = [
    Trial(Point(*point), ANY)
    for point in (
        ("expire", "expire", "before"),
        ("expire", "expire"),
        ("stage", "stage"),
        ("feed", "backfill_open"),
        ("reap", "reap", "before"),
        ("reap", "reap"),
        ("reap", "settle_slots"),
    )
]


class Scene:
    """The keepers of one group of trials, and their jobs."""

    def __init__(self, house: House, keepers: Keepers, trials: Sequence[Trial]) -> None:
        self.house = house
        self.keepers = keepers
        self.queues = {trial: f"trial-{number}" for number, trial in enumerate(trials)}
        self.jobs = {trial: [self._enqueue(trial) for _ in range(trial.jobs)] for trial in trials}
        self.mortals: dict[Trial, Mortal] = {}

    def _enqueue(self, trial: Trial) -> int:
        args = (trial.gate,) if trial.task == "wait" else trial.args
        return put(self.queues[trial], trial.task, *args)

    def strike(self) -> None:
        """Let a keeper come to the point of each trial; all are dead then."""
        for trial, queue in self.queues.items():
            if trial.limit.concurrency is not None:
                run(queues.limit(queue, trial.limit, authority=SYSTEM, by="test"))
            config = plain_config(self.house, queue, **(trial.config or {}))
            self.mortals[trial] = self.keepers.start(config, trial.point)
        for trial in self.queues:
            if trial.task == "listen":
                self._wait_for_handler(trial)
                self.mortals[trial].kill(signal.SIGTERM)
            elif trial.task == "wait":
                self._wait_for_handler(trial)
                self._take_lease(trial)
                if trial.point.verb == "complete":  # a heartbeat is to find it running
                    (self.house.folder / trial.gate).touch()
        try:
            wait_for(lambda: not self._alive(), seconds=60)
        except AssertionError as error:
            raise AssertionError(f"not reached: {self._alive()}") from error

    def _alive(self) -> list[str]:
        return [str(trial.point) for trial, mortal in self.mortals.items() if not mortal.is_dead]

    def _wait_for_handler(self, trial: Trial) -> None:
        attempts_of = f"{self.jobs[trial][0]}."
        wait_for(lambda: any(who.startswith(attempts_of) for who in self.house.wrote("began")), seconds=60)

    def _take_lease(self, trial: Trial) -> None:
        """Let the lease of the trial's keeper run out and be reaped, though it renews it."""
        [job_id] = self.jobs[trial]
        # Nobody is to claim it again before the keeper is dead, least of all that one.
        run(queues.pause(self.queues[trial], authority=SYSTEM, by="test", reason="the lease is taken"))
        found = job(job_id)
        worker, held = found.worker_id, [Lease(job_id, found.fence)]
        assert worker is not None

        def is_out() -> bool:
            answer = run(lease.heartbeat(held, authority=SYSTEM, worker_id=worker, lease_seconds=0.0))
            return bool(answer.renewed)

        def is_reaped() -> bool:
            run(upkeep.reap(authority=SYSTEM))
            return bool(attempts(job_id))

        wait_for(is_out, seconds=20)
        wait_for(is_reaped, seconds=20)

    def finish(self, *more_queues: str) -> None:
        """Let another keeper do what is left, in these queues too."""
        every_queue = (*self.queues.values(), *more_queues)
        for queue in every_queue:
            run(queues.resume(queue, authority=SYSTEM))
        another = plain_config(self.house, *every_queue, threads=8, stage_seconds=0.01, reap_seconds=0.02)
        self.keepers.start(another)
        every = [one for jobs in self.jobs.values() for one in jobs]
        ended = {*FINAL, State.QUARANTINED}
        wait_for(lambda: all(job(one).state in ended for one in every), seconds=60)
        assert audit(self.house.lines(), self.house.dsn, every, at_rest=False) == []

    def told(self, trial: Trial) -> str | None:
        """What the record says of the last attempt of the trial's keeper."""
        with connection.cursor() as cursor:
            cursor.execute(
                "select concat_ws(' ', outcome, error_code) from ("
                " select job_id, fence, worker_id, outcome, error_code from shiftboss_attempt"
                " union all select id, fence, worker_id, state, null from shiftboss_finished"
                "   where state = 'completed'"
                ") a (job_id, fence, worker_id, outcome, error_code)"
                " where job_id = any (%s) and worker_id in (select id from shiftboss_worker where pid = %s)"
                " order by fence desc limit 1",
                [self.jobs[trial], self.mortals[trial].pid],
            )
            row = cursor.fetchone()
        return row and str(row[0])

    def rejections(self, trial: Trial) -> int:
        """How many writes of the trial's verb the record says that it refused for its job.

        A keeper that listens anew asks what became of its leases, whenever that is: its heartbeat may be refused
        too.
        """
        [job_id] = self.jobs[trial]
        events = run(read.events(authority=SYSTEM, job_id=job_id))
        told = [json.loads(event.data) for event in events if event.kind == "write_rejected"]
        return sum(one["verb"] == trial.point.verb for one in told)

    def judge(self) -> None:
        """Each keeper's last attempt ended as its trial says, and each job as it had to."""
        wrong = {}
        for trial, jobs in self.jobs.items():
            found: list[Any] = [self.told(trial), {job(one).state for one in jobs}]
            right: list[Any] = [found[0] if trial.told == ANY else trial.told, {trial.final}]
            if trial.task == "wait":
                found.append(self.rejections(trial))
                right.append(trial.refused)
            if found != right:
                wrong[str(trial.point)] = (found, right)
        assert wrong == {}


@pytest.mark.requirement("L30", "L2", "L5", "N9", "N14")
@pytest.mark.parametrize(
    "trials",
    [
        pytest.param(trials, id=name)
        for name, trials in (
            ("claims", CLAIMS),
            ("heartbeats", BEATS),
            ("ends", ENDS),
            ("refusals", REFUSALS),
            ("notes", NOTES),
        )
    ],
)
def test_wherever_a_keeper_dies_each_attempt_has_one_outcome_and_another_finishes_all(
    house: House, trials: list[Trial]
) -> None:
    with Keepers(house.folder) as keepers:
        scene = Scene(house, keepers, trials)
        scene.strike()
        scene.finish()
        scene.judge()
        for trial in trials:
            if trial.task == "tell":
                _is_kept(house, scene.jobs[trial][0])


@pytest.mark.requirement("L30", "L8", "N14")
def test_wherever_a_keeper_dies_in_its_upkeep_nothing_is_left_half_done(house: House) -> None:
    with Keepers(house.folder) as keepers:
        scene = Scene(house, keepers, UPKEEP)
        ends: dict[int, State] = {}
        gone = a_worker("left", tasks=["tests.faults.plain.work"])
        for _ in range(3):
            ends[put("left", "work")] = State.COMPLETED
            claimed(gone, queue="left", tasks=["tests.faults.plain.work"], lease_seconds=0.01)
        soon = datetime.now(UTC) + timedelta(seconds=0.1)
        for _ in range(3):
            ends[put("left", "work", due_at=soon)] = State.COMPLETED
            ends[put("idle", "work", due_at=soon, deadline=soon)] = State.CANCELLED
        wait_for(lambda: datetime.now(UTC) > soon, seconds=20)
        scene.strike()
        scene.finish("left")
        scene.judge()
        wait_for(lambda: {one: job(one).state for one in ends} == ends, seconds=40)
        assert audit(house.lines(), house.dsn, ends) == []


def _is_kept(house: House, job_id: int) -> None:
    """What a handler was told to be saved is what its next attempt finds."""
    saved = {line.name for line in house.lines() if line.kind == "saved"}
    found = {line.name for line in house.lines() if line.kind == "found-half-way"}
    for fence in range(1, job(job_id).fence):
        if f"{job_id}.{fence}" in saved:
            assert f"{job_id}.{fence + 1}" in found
