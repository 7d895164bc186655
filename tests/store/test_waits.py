"""How long the jobs of queues have waited, and up to which job a look goes."""

import pytest

from shiftboss import Owner
from shiftboss.queue.buckets import bucket_of
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import histograms, waiting
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, a_worker, claimed, enqueued, execute, report

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3")]


def done(worker: int, queue: str, *, waited_seconds: float) -> None:
    """A job of this queue that is done, and has waited so long."""
    [job_id] = enqueued(queue=queue)
    [job] = claimed(worker, queue=queue)
    execute(
        "update shiftboss_job set due_at = started_at - make_interval(secs => %s) where id = %s",
        waited_seconds,
        job_id,
    )
    run(report("complete", job.lease, worker))


def test_the_waits_of_queues_are_told_together(perform: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "EVERY_SECONDS", 0.0)
    worker = a_worker("mail", "odd/name")
    for queue, waited in (("mail", 1.0), ("mail", 100.0), ("odd/name", 5.0), ("other", 7.0)):
        done(worker, queue, waited_seconds=waited)
    execute(
        "update shiftboss_finished set finished_at = finished_at - interval '3 minutes', "
        "started_at = started_at - interval '3 minutes', due_at = due_at - interval '3 minutes'"
    )
    while run(histograms.write(authority=SYSTEM)):
        pass
    found = perform(waiting.waits(["mail", "odd/name", "none"], authority=SYSTEM))
    assert set(found) == {"mail", "odd/name"}
    assert found["mail"] == {bucket_of(1000): 1, bucket_of(100_000): 1}
    assert found["odd/name"] == {bucket_of(5000): 1}
    assert perform(waiting.waits(["mail"], authority=SYSTEM, back_seconds=0.0)) == {}


def test_the_newest_live_job_is_told(perform: Perform) -> None:
    assert perform(waiting.newest(authority=SYSTEM)) == 0
    ids = enqueued(3)
    assert perform(waiting.newest(authority=SYSTEM)) == max(ids)


@pytest.mark.requirement("N4")
def test_owners_are_told_nothing_of_it() -> None:
    for verb in (waiting.waits(["mail"], authority=Owner("kim")), waiting.newest(authority=Owner("kim"))):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)
