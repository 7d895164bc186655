"""The configuration by which a job runs: written once with the job, never changed, and nobody waits for it."""

from typing import Any

import psycopg
import pytest
from django.db import DataError, transaction

import shiftboss
from shiftboss import Owner, acts
from shiftboss.queue.errors import InvalidJob, NotAllowed
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.store import operate, read, upkeep
from shiftboss.queue.store.enqueue import OnConflict, enqueue, enqueue_many
from shiftboss.queue.store.statement import run
from shiftboss.queue.tasks import config_of
from tests.acts.people import person
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    TASK,
    claim,
    claimed,
    enqueued,
    finished,
    live,
    new_job,
    report,
    rows,
    running,
    scalar,
)
from tests.store.sessions import Session
from tests.store.tasks import add
from tests.store.test_operate import LIMITS

pytestmark = pytest.mark.requirement("L15")

SHORT = TaskConfig(task=TASK, timeout_seconds=3.0, secrets=("token",))
LONG = TaskConfig(task=TASK, timeout_seconds=300.0)
ADD = "tests.store.tasks.add"


def kept() -> dict[int, list[str]]:
    """What the record holds under each revision."""
    found: dict[int, list[str]] = {}
    for revision, config in rows("select revision, config::text from shiftboss_revision order by id"):
        found.setdefault(revision, []).append(config)
    return found


def revision_of(job_id: int) -> Any:
    """What a job points to."""
    row = live(job_id) or finished(job_id)
    assert row
    return row["revision_id"]


WAYS: dict[str, Any] = {
    "one": lambda config, n: enqueue(new_job(revision=config), authority=SYSTEM),
    "one with a key": lambda config, n: enqueue(new_job(revision=config, key=f"k{n}"), authority=SYSTEM),
    "copied": lambda config, n: enqueue_many([new_job(revision=config)], authority=SYSTEM),
    "many with keys": lambda config, n: enqueue_many([new_job(revision=config, key=f"k{n}")], authority=SYSTEM),
}
EACH_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@EACH_WAY
def test_a_configuration_is_written_with_the_first_job_that_points_to_it(way: Any, perform: Perform) -> None:
    answers = []
    for n, config in enumerate((SHORT, LONG, SHORT, None)):
        answer = perform(way(config, n))
        answers.append(answer[0] if isinstance(answer, list) else answer)
    assert [revision_of(one.id) for one in answers] == [SHORT.revision, LONG.revision, SHORT.revision, None]
    held = kept()
    assert {number: TaskConfig.from_json(one) for number, [one] in held.items()} == {
        SHORT.revision: SHORT,
        LONG.revision: LONG,
    }
    assert rows("select distinct task from shiftboss_revision") == [(TASK,)]


def test_a_batch_writes_each_configuration_once_whatever_way_its_jobs_go(perform: Perform) -> None:
    configs = [SHORT, LONG, None, SHORT, LONG, SHORT]
    jobs = [new_job(revision=config, key=f"k{n}" if n % 2 else None) for n, config in enumerate(configs)]
    answers = perform(enqueue_many(jobs, authority=SYSTEM))
    assert [revision_of(one.id) for one in answers] == [config and config.revision for config in configs]
    assert {number: len(texts) for number, texts in kept().items()} == {SHORT.revision: 1, LONG.revision: 1}


@EACH_WAY
def test_what_was_rolled_back_is_written_again_by_the_next_job(way: Any) -> None:
    with transaction.atomic():
        run(way(SHORT, 1))
        assert list(kept()) == [SHORT.revision]
        transaction.set_rollback(True)
    assert kept() == {}
    with transaction.atomic():
        with transaction.atomic():
            run(way(SHORT, 2))
            transaction.set_rollback(True)
        run(way(SHORT, 3))
    assert list(kept()) == [SHORT.revision]
    assert rows("select revision_id from shiftboss_job") == [(SHORT.revision,)]


@EACH_WAY
def test_nobody_waits_for_another_who_has_not_committed_the_same_configuration(way: Any, connect: Any) -> None:
    first: Session = connect()
    second: Session = connect()
    for session in (first, second):
        session.execute("set statement_timeout = '10s'")
        session.execute("begin")
    first.run(way(SHORT, 1))
    second.run(way(SHORT, 2))
    second.execute("commit")
    first.execute("commit")
    # Two rows, alike: a reader takes any of them.
    assert [len(texts) for texts in kept().values()] == [2]
    assert set(kept()[SHORT.revision]) == {kept()[SHORT.revision][0]}
    found = run(read.revisions([SHORT.revision], authority=SYSTEM))
    assert TaskConfig.from_json(found[SHORT.revision]) == SHORT


def test_a_follow_up_and_a_replacement_point_to_their_own_configuration(perform: Perform, worker: int) -> None:
    running(worker, key="k", revision=SHORT)
    follow_up = perform(enqueue(new_job(key="k", follow_up=True, revision=LONG), authority=SYSTEM))
    assert (revision_of(follow_up.id), list(kept())) == (LONG.revision, [SHORT.revision, LONG.revision])
    waits = perform(enqueue(new_job(key="w", revision=LONG), authority=SYSTEM))
    other = TaskConfig(task=TASK, durable="each")
    placed = perform(enqueue(new_job(key="w", on_conflict=OnConflict.REPLACE, revision=other), authority=SYSTEM))
    assert (revision_of(waits.id), revision_of(placed.id)) == (LONG.revision, other.revision)
    assert [TaskConfig.from_json(text) for text in kept()[other.revision]] == [other]


@pytest.mark.requirement("L20")
def test_an_automatic_retry_keeps_its_revision_to_the_end(worker: int) -> None:
    [held] = running(worker, revision=SHORT, failure_limit=9)
    for way_back in ("fail", "release", "snooze", "reap_own"):
        run(report(way_back, held, worker))
        run(operate.expedite([held.job_id], authority=SYSTEM, by="kim"))
        [again] = claimed(worker)
        assert (again.id, again.revision_id) == (held.job_id, SHORT.revision)
        held = again.lease
    run(report("complete", held, worker))
    assert revision_of(held.job_id) == SHORT.revision


@pytest.mark.requirement("L20")
def test_an_expired_lease_leaves_the_revision_alone(worker: int) -> None:
    [held] = running(worker, lease_seconds=0.001, revision=SHORT)
    while not run(upkeep.reap(authority=SYSTEM)):
        pass
    assert revision_of(held.job_id) == SHORT.revision


@pytest.mark.requirement("L20")
def test_a_rerun_takes_the_same_configuration_or_the_one_given(perform: Perform, worker: int) -> None:
    [held] = running(worker, revision=SHORT)
    run(report("complete", held, worker))
    wished = (None, LONG, LONG)
    again = [
        perform(operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS, revision=config)) for config in wished
    ]
    assert [revision_of(one.id) for one in again] == [SHORT.revision, LONG.revision, LONG.revision]
    assert {number: len(texts) for number, texts in kept().items()} == {SHORT.revision: 1, LONG.revision: 1}


@pytest.mark.requirement("L20")
def test_a_person_chooses_by_which_configuration_a_job_is_rerun(worker: int) -> None:
    then = add.using(timeout=5).enqueue(1)
    [held] = run(claim(worker, tasks=[ADD]))
    run(report("complete", held.lease, worker))
    was = config_of(add.using(timeout=5), "default").revision
    now = config_of(add, "default").revision
    same = acts.rerun(int(then.id), by=person())
    current = acts.rerun(int(then.id), by=person(), revision="current", request_id="r1")
    assert (revision_of(same.new_job_id or 0), revision_of(current.new_job_id or 0)) == (was, now)
    again = acts.rerun(int(then.id), by=person(), revision="current", request_id="r1")
    assert (again.repeated, again.new_job_id) == (True, current.new_job_id)
    with pytest.raises(InvalidJob, match="revision is same or current, not 'newest'"):
        acts.rerun(int(then.id), by=person(), revision="newest")


@pytest.mark.requirement("L20")
def test_a_task_that_is_gone_has_no_current_configuration(worker: int) -> None:
    [held] = running(worker, revision=SHORT)
    run(report("complete", held, worker))
    with pytest.raises(InvalidJob, match=r"no current revision: .* rerun it by the same one"):
        acts.rerun(held.job_id, by=person(), revision="current")
    assert acts.rerun(held.job_id, by=person()).new_job_id


def test_what_a_task_says_is_what_its_jobs_point_to() -> None:
    slow = add.using(timeout=60, durable="each")
    one = slow.enqueue(1)
    [other, plain] = shiftboss.enqueue_many([slow.with_arguments(2), add.with_arguments(3)])
    expected = config_of(slow, "default")
    assert [revision_of(int(result.id)) for result in (one, other, plain)] == [
        expected.revision,
        expected.revision,
        config_of(add, "default").revision,
    ]
    found = run(read.job(authority=SYSTEM, job_id=int(one.id)))
    assert found
    assert found.revision_id == expected.revision
    assert TaskConfig.from_json(found.revision or "") == expected


def test_configurations_are_read_by_number_as_far_as_they_are_known(perform: Perform) -> None:
    enqueued(revision=SHORT)
    enqueued(revision=LONG)
    found = perform(read.revisions([LONG.revision, 7, LONG.revision], authority=SYSTEM))
    assert {number: TaskConfig.from_json(text) for number, text in found.items()} == {LONG.revision: LONG}
    assert perform(read.revisions([], authority=SYSTEM)) == {}
    with pytest.raises(NotAllowed):
        run(read.revisions([LONG.revision], authority=Owner("kim")))


@EACH_WAY
def test_a_configuration_that_cannot_be_stored_leaves_nothing(way: Any) -> None:
    for name in ("a\x00", "a\ud800"):
        with pytest.raises((DataError, psycopg.DataError)):
            run(way(TaskConfig(task=TASK, resource=name), 1))
    assert (kept(), scalar("select count(*) from shiftboss_job")) == ({}, 0)
