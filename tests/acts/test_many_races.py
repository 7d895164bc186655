"""Acts on many jobs beside other people and workers, each on a connection of its own."""

from collections.abc import Iterator
from functools import partial

import pytest

from shiftboss import acts
from shiftboss.acts import Many, performing
from shiftboss.acts.many import Sweep, Swept
from shiftboss.permissions import Act
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import audit, operate
from shiftboss.queue.store.many import Held
from shiftboss.queue.store.operate import Why
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.acts.test_races import on_its_own
from tests.store import making
from tests.store.sessions import Session, together

pytestmark = [
    pytest.mark.django_db(transaction=True, available_apps=["django.contrib.postgres"]),
    pytest.mark.usefixtures("record"),
    pytest.mark.requirement("C4", "N10"),
]
ROUNDS = 5


@pytest.fixture
def other(record: None) -> Iterator[Session]:
    """Somebody else's connection."""
    session = Session(making.address())
    yield session
    session.close()


@pytest.mark.parametrize("act", [Act.RERUN, Act.CANCEL])
def test_of_two_equal_requests_on_many_at_once_one_is_done_and_both_answer_the_same(act: Act) -> None:
    worker = making.a_worker()
    for _ in range(ROUNDS):
        make = making.completed if act is Act.RERUN else making.scheduled
        jobs, request = [make(worker).job_id for _ in range(3)], a_request()

        def do(jobs: list[int] = jobs, request: str = request) -> Many:
            return acts.on_many(act, jobs, by=person(), reason="because", request_id=request)

        first, second = together(on_its_own(do), on_its_own(do))
        assert first.changed == second.changed == tuple(jobs)
        assert first.new_jobs == second.new_jobs
        assert {first.repeated, second.repeated} == {False, True}
        reruns = making.scalar("select count(*) from shiftboss_job where rerun_of = any (%s)", jobs)
        assert reruns == (3 if act is Act.RERUN else 0)


def test_a_job_that_somebody_holds_too_long_is_left_busy_and_the_others_are_changed(
    other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (performing, operate):
        monkeypatch.setattr(module, "HOLD_MILLISECONDS", 50)
    jobs = making.enqueued(3)
    other.execute("begin")
    other.execute("select 1 from shiftboss_job where id = %s for update", [jobs[1]])
    done = acts.on_many(Act.CANCEL, jobs, by=person(), reason="because")
    other.execute("rollback")
    assert done.changed == (jobs[0], jobs[2])
    assert [(one.id, one.why) for one in done.left] == [(jobs[1], Why.BUSY)]
    assert [making.state(job_id) for job_id in jobs] == ["cancelled", "available", "cancelled"]
    [row] = [row for row in run(audit.entries(authority=making.SYSTEM)) if row.operation == done.operation]
    assert row.jobs == 2


def to_its_end(sweep: Sweep) -> Swept:
    """How far it is after its last batch."""
    *_, last = sweep.steps()
    return last


def test_an_undo_beside_a_claim_takes_no_job_from_a_worker() -> None:
    worker = making.a_worker()
    for _ in range(ROUNDS):
        job_id = making.quarantined(worker).job_id
        *_, swept = acts.reinstate_matching(Held(reason=QuarantineReason.FAILURES_EXHAUSTED), by=person())
        undo = acts.undo(swept.operation, by=person(), reason="too early")
        swept_back, claimed = together(
            on_its_own(partial(to_its_end, undo)),
            on_its_own(partial(run, making.claim(worker))),
        )
        assert swept_back.changed + len(claimed) == 1
        assert making.state(job_id) == ("running" if claimed else "quarantined")
        making.empty()
        worker = making.a_worker()
