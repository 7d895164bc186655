"""A paused queue is not claimed from; all else goes on."""

import time
from typing import Any

import pytest
from django.db import transaction

from shiftboss import Owner
from shiftboss.queue.contract import Settlement
from shiftboss.queue.errors import InvalidJob, NotAllowed
from shiftboss.queue.store import operate, queues, upkeep
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    claim,
    claimed,
    enqueued,
    expired,
    report,
    running,
    state,
)
from tests.store.sessions import Session, together
from tests.store.test_claim import mark_of
from tests.store.test_upkeep import now_due
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("P6")


def paused(queue: str = "default") -> None:
    """A queue that somebody has paused."""
    assert run(queues.pause(queue, authority=SYSTEM, by="kim", reason="deploy"))


def test_a_paused_queue_is_not_claimed_from_until_it_is_resumed(perform: Perform, worker: int) -> None:
    first, second = enqueued(2)
    [elsewhere] = enqueued(queue="mail")
    assert perform(queues.pause("default", authority=SYSTEM, by="kim", reason="deploy"))
    assert perform(claim(worker, n=5)) == []
    assert perform(claim(worker, n=5, after=mark_of(first))) == []
    assert [job.id for job in perform(claim(worker, n=5, queue="mail"))] == [elsewhere]
    assert perform(queues.resume("default", authority=SYSTEM))
    assert [job.id for job in perform(claim(worker, n=5))] == [first, second]


def test_the_first_pause_is_kept_and_another_is_none(perform: Perform) -> None:
    paused()
    [before] = perform(queues.pauses(authority=SYSTEM))
    assert not perform(queues.pause("default", authority=SYSTEM, by="lee", reason="too"))
    assert perform(queues.pauses(authority=SYSTEM)) == [before]
    assert (before.queue, before.paused_by, before.reason) == ("default", "kim", "deploy")
    assert perform(queues.resume("default", authority=SYSTEM))
    assert not perform(queues.resume("default", authority=SYSTEM))
    assert perform(queues.pauses(authority=SYSTEM)) == []
    # It may be paused again, by another.
    assert perform(queues.pause("default", authority=SYSTEM, by="lee", reason="again"))
    assert [pause.paused_by for pause in perform(queues.pauses(authority=SYSTEM))] == ["lee"]


def test_only_the_queue_that_is_named_is_resumed(perform: Perform) -> None:
    paused("default")
    paused("mail")
    assert perform(queues.resume("mail", authority=SYSTEM))
    assert not perform(queues.resume("nobody.knows", authority=SYSTEM))
    assert [pause.queue for pause in perform(queues.pauses(authority=SYSTEM))] == ["default"]


def test_while_a_queue_is_paused_all_else_goes_on(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    lost = expired(worker)
    [due] = enqueued(due_in=3600)
    [late] = enqueued(deadline_in=-1)
    paused()
    [new] = enqueued()
    now_due(due)
    assert perform(report("complete", held, worker)) == Settlement(settled={held})
    assert [job.id for job in perform(upkeep.reap(authority=SYSTEM))] == [lost.job_id]
    assert perform(upkeep.stage(authority=SYSTEM)) == 2
    assert perform(upkeep.expire(authority=SYSTEM)) == 1
    assert perform(operate.cancel([new], authority=SYSTEM)).changed
    assert [state(job_id) for job_id in (held.job_id, lost.job_id, due, late, new)] == [
        "completed",
        "available",
        "available",
        "cancelled",
        "cancelled",
    ]


def test_a_pause_that_is_rolled_back_is_none(worker: int) -> None:
    enqueued()
    with transaction.atomic():
        paused()
        transaction.set_rollback(True)
    claimed(worker)


@pytest.mark.requirement("C4", "L30")
def test_no_claim_that_starts_after_a_pause_takes_a_job(connect: Any, worker: int) -> None:
    keeper: Session = connect()
    operator: Session = connect()
    for _ in range(20):
        enqueued(40)
        claims: list[tuple[float, int]] = []
        paused_at: list[float] = []

        def work(claims: list[tuple[float, int]] = claims, paused_at: list[float] = paused_at) -> None:
            while not paused_at or claims[-1][0] < paused_at[0]:
                began = time.monotonic()
                claims.append((began, len(keeper.run(claim(worker)))))

        def pause(claims: list[tuple[float, int]] = claims, paused_at: list[float] = paused_at) -> None:
            wait_for(lambda: len(claims) > 2, seconds=20, every=0.001)
            operator.run(queues.pause("default", authority=SYSTEM, by="kim", reason="deploy"))
            paused_at.append(time.monotonic())

        together(work, pause)
        assert [jobs for began, jobs in claims if began > paused_at[0]] == [0] * sum(
            began > paused_at[0] for began, _ in claims
        )
        run(queues.resume("default", authority=SYSTEM))


@pytest.mark.parametrize("name", ["", "x" * 101, "a\x00"])
def test_no_queue_that_cannot_be_is_paused(name: str) -> None:
    with pytest.raises(InvalidJob, match="queue"):
        run(queues.pause(name, authority=SYSTEM, by="kim", reason="deploy"))


@pytest.mark.requirement("N4")
def test_owners_order_nothing_of_queues() -> None:
    owner = Owner("kim")
    for verb in (
        queues.pause("default", authority=owner, by="kim", reason="deploy"),
        queues.resume("default", authority=owner),
        queues.pauses(authority=owner),
    ):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)
