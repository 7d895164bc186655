"""Acts of several people at one moment, each on a connection of its own."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from django.db import connection

from shiftboss import acts
from shiftboss.acts import Acted, performing
from shiftboss.queue.authority import System
from shiftboss.queue.errors import Busy, MovedOn
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, lease, operate
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.store import making
from tests.store.sessions import Session, together

pytestmark = [
    pytest.mark.django_db(transaction=True, available_apps=["django.contrib.postgres"]),
    pytest.mark.usefixtures("record"),
    pytest.mark.requirement("C4", "N10"),
]
R = TypeVar("R")
SYSTEM = System()
ROUNDS = 50


def on_its_own(call: Callable[[], R]) -> Callable[[], R]:
    """The call on a connection that its thread opens and closes."""

    def alone() -> R:
        try:
            return call()
        finally:
            connection.close()

    return alone


def answer(call: Callable[[], Acted]) -> Callable[[], Acted | Exception]:
    """What an act answers, refused or done."""

    def asked() -> Acted | Exception:
        try:
            return call()
        except (MovedOn, Busy) as refused:
            return refused

    return on_its_own(asked)


@pytest.fixture
def other(record: None) -> Iterator[Session]:
    """Somebody else's connection."""
    session = Session(making.address())
    yield session
    session.close()


def test_of_two_equal_requests_at_once_one_is_done_and_both_answer_the_same() -> None:
    worker = making.a_worker()
    for _ in range(ROUNDS):
        done, request = making.completed(worker).job_id, a_request()

        def rerun(job_id: int = done, request: str = request) -> Acted:
            return acts.rerun(job_id, by=person(), request_id=request)

        first, second = together(on_its_own(rerun), on_its_own(rerun))
        assert first.new_job_id == second.new_job_id
        assert {first.repeated, second.repeated} == {False, True}
        assert making.scalar("select count(*) from shiftboss_job where rerun_of = %s", done) == 1
        assert len(run(audit.entries(authority=SYSTEM, job_id=done))) == 1


def test_of_two_people_who_expedite_a_job_at_once_one_does_it_and_one_is_told() -> None:
    for _ in range(ROUNDS // 3):
        [job_id] = making.enqueued(due_in=3600)
        answers = together(
            answer(lambda job_id=job_id: acts.expedite(job_id, by=person("kim"))),  # type: ignore[misc]
            answer(lambda job_id=job_id: acts.expedite(job_id, by=person("ola"))),  # type: ignore[misc]
        )
        [done] = [one for one in answers if isinstance(one, Acted)]
        [refused] = [one for one in answers if isinstance(one, MovedOn)]
        assert (done.after, refused.state) == ("available", "available")
        assert len(run(audit.entries(authority=SYSTEM, job_id=job_id))) == 1
        assert len(making.events(job_id)) == 1


@pytest.mark.requirement("L5")
def test_a_cancel_beside_a_claim_either_ends_the_job_or_asks_for_its_end() -> None:
    worker = making.a_worker()
    for _ in range(ROUNDS // 3):
        [job_id] = making.enqueued()
        acted, claimed = together(
            on_its_own(lambda job_id=job_id: acts.cancel(job_id, by=person(), reason="because")),  # type: ignore[misc]
            on_its_own(lambda: run(making.claim(worker))),
        )
        assert isinstance(acted, Acted)
        if claimed:
            assert acted.after == "running"
            assert making.live(job_id)["cancel_cause"] == "user"  # type: ignore[index]
            run(lease.complete([(claimed[0].lease, making.DONE)], authority=SYSTEM, worker_id=worker))
        else:
            assert making.state(job_id) == acted.after == "cancelled"


def test_a_job_that_somebody_holds_too_long_is_busy_and_left_alone(
    other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (performing, operate):
        monkeypatch.setattr(module, "HOLD_MILLISECONDS", 50)
    [job_id] = making.enqueued(due_in=3600)
    other.execute("begin")
    other.execute("select 1 from shiftboss_job where id = %s for update", [job_id])
    with pytest.raises(Busy, match="try again"):
        acts.expedite(job_id, by=person())
    assert run(audit.entries(authority=SYSTEM, job_id=job_id)) == []
    other.execute("rollback")
    assert acts.expedite(job_id, by=person()).after == "available"


def test_a_queue_that_somebody_is_pausing_too_long_is_busy(
    other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(performing, "HOLD_MILLISECONDS", 50)
    other.execute("begin")
    other.execute("insert into shiftboss_queue values ('mail', now(), 'ola', '')")
    with pytest.raises(Busy, match="try again"):
        acts.pause("mail", by=person(), reason="because")
    other.execute("rollback")
    assert acts.pause("mail", by=person(), reason="because").before == "running"


def test_jobs_that_somebody_has_in_hand_are_left_by_a_bulk_act_and_told(other: Session) -> None:
    jobs = making.enqueued(5)
    other.execute("begin")
    other.execute("select 1 from shiftboss_job where id = %s for update", [jobs[2]])
    which = operate.Matching(states=frozenset({State.AVAILABLE}))
    *_, last = acts.cancel_matching(which, by=person(), reason="because")
    assert (last.ended, last.left) == (4, 1)
    assert run(audit.total(last.operation, authority=SYSTEM)) == 4
    other.execute("rollback")
    assert making.state(jobs[2]) == "available"


def test_a_bulk_act_comes_back_to_a_job_that_somebody_had_in_hand(other: Session) -> None:
    jobs = making.enqueued(3)
    other.execute("begin")
    other.execute("select 1 from shiftboss_job where id = %s for update", [jobs[1]])
    steps = acts.cancel_matching(operate.Matching(states=frozenset({State.AVAILABLE})), by=person(), reason="x")
    assert next(steps).ended == 2
    other.execute("rollback")
    *_, last = steps
    assert (last.ended, last.left) == (3, 0)
    assert run(audit.total(last.operation, authority=SYSTEM)) == 3
