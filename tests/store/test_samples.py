"""Samples of the whole: what is seen, when it is looked at again, and that two who look cost no more than one."""

import threading
from typing import Any

import pytest

from shiftboss.queue.authority import Owner
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import marks, rolls, samples
from shiftboss.queue.store.rolls import Move
from shiftboss.queue.store.samples import HEAVY, LIGHT, Part
from shiftboss.queue.store.statement import run
from tests.store.making import (
    SYSTEM,
    a_host,
    a_worker,
    available,
    completed,
    enqueued,
    execute,
    expired,
    quarantined,
    rows,
    running,
    says,
    scalar,
)

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B7", "B8", "L28")]


def seen(part: Part) -> Any:
    """What is seen of a part now."""
    execute("update shiftboss_sample set at = 'epoch' where part = %s", str(part))
    assert run(samples.look(part, authority=SYSTEM))
    return run(samples.samples(authority=SYSTEM))[part].seen


def test_live_jobs_are_counted_by_queue_and_state() -> None:
    worker = a_worker()
    enqueued(2, queue="mail")
    running(worker)
    quarantined(worker)
    assert sorted(seen(Part.COUNTS)) == [
        ["default", "quarantined", 1],
        ["default", "running", 1],
        ["mail", "available", 2],
    ]


def test_of_each_queue_the_job_that_is_due_for_longest_is_found_whatever_its_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "WAITS_CAP", 2)
    for queue in ("b", "a"):
        for priority in (7, 0, -7):
            enqueued(queue=queue, priority=priority)
    execute("update shiftboss_job set due_at = due_at - interval '1 hour' where queue = 'a' and priority = -7")
    execute("update shiftboss_job set due_at = due_at - interval '2 hours' where queue = 'b' and priority = 0")
    enqueued(queue="later", due_in=3600)
    found = {queue: (jobs, int(oldest) // 3600) for queue, jobs, oldest in seen(Part.WAITS)}
    assert found == {"a": (2, 1), "b": (2, 2)}


def test_a_lease_that_is_over_is_stuck_once_a_reaper_would_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = a_worker()
    lost = expired(worker)
    running(worker)
    assert seen(Part.LEASES)["stuck_in"] == []
    monkeypatch.setattr(samples, "STUCK_SECONDS", 0.0)
    found = seen(Part.LEASES)
    assert found["stuck_in"] == [["default", 1]]
    assert found["longest"][0][0] == lost.job_id
    assert found["running"][0][:2] == ["default", 2]


def test_the_quarantine_is_counted_by_reason_and_of_the_last_hour() -> None:
    worker = a_worker()
    first, second = quarantined(worker), quarantined(worker)
    execute(
        "update shiftboss_job set quarantined_at = quarantined_at - interval '2 h' where id = %s", first.job_id
    )
    [[reason, queue, jobs, fresh, _, _, newest]] = seen(Part.QUARANTINE)
    assert (reason, queue, jobs, fresh, newest) == ("failures_exhausted", "default", 2, 1, second.job_id)


def test_workers_are_seen_together_and_by_queue_the_late_and_the_silent_ones_apart() -> None:
    live, late, silent, gone = a_worker("default"), a_worker("default", "mail"), a_worker("mail"), a_worker("old")
    says(live, in_use=3, lag_ms=40)
    says(gone, state="stopped")
    execute("update shiftboss_worker set heartbeat_at = now() - interval '20 s' where id = %s", late)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '90 s' where id = %s", silent)
    found = seen(Part.WORKERS)
    assert [found[name] for name in ("live", "slots", "in_use", "silent", "late")] == [2, 32, 3, 1, 1]
    assert found["latest"]["id"] == found["lag"]["id"] == late
    assert 14 < found["lag"]["now"] < 60
    assert found["worst"]["id"] == live
    served = {queue: (workers, slots) for queue, workers, slots, *_ in found["queues"]}
    assert served == {"default": (2, 32), "mail": (1, 16), "old": (0, 0)}


def test_jobs_in_and_out_are_those_of_the_last_minute() -> None:
    worker = a_worker()
    completed(worker)
    available(worker)
    enqueued(2, queue="mail")
    execute("update shiftboss_job set enqueued_at = enqueued_at - interval '2 minutes' where queue = 'default'")
    found = seen(Part.RATES)
    assert found["seconds"] == 60
    assert sorted(found["in"]) == [["default", 1], ["mail", 2]]
    assert found["out"] == [["default", 1, 0]]


def test_where_the_newest_jobs_do_not_reach_back_a_minute_the_rate_is_told_of_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "RATES_BUDGET", 3)
    enqueued(6)
    execute("update shiftboss_job set enqueued_at = enqueued_at - interval '20 s'")
    found = seen(Part.RATES)
    assert 20 <= found["seconds"] < 60
    assert found["in"] == [["default", 2]]


def test_minutes_that_a_histogram_knows_are_taken_from_there() -> None:
    worker = a_worker()
    completed(worker)
    assert [row[2:] for row in seen(Part.MINUTES)] == [[1, 0]]
    execute(
        "insert into shiftboss_histogram (seconds, queue, task, at, completed)"
        " select 60, queue, '', date_trunc('minute', now()) - interval '2 minutes', 7"
        " from (values (''), ('default')) known (queue)"
    )
    assert sorted(row[2] for row in seen(Part.MINUTES)) == [1, 7]


@pytest.mark.parametrize("part", list(Part))
def test_a_part_is_not_looked_at_again_too_soon_and_a_slow_one_later(part: Part) -> None:
    assert run(samples.due([part], authority=SYSTEM)) == [part]
    assert run(samples.look(part, authority=SYSTEM)) is True
    before = rows("select * from shiftboss_sample")
    assert run(samples.due([part], authority=SYSTEM)) == []
    assert run(samples.look(part, authority=SYSTEM)) is False
    assert rows("select * from shiftboss_sample") == before
    execute("update shiftboss_sample set at = at - interval '3 s', took_ms = 1000")
    assert run(samples.look(part, authority=SYSTEM)) is False
    execute("update shiftboss_sample set at = at - interval '3 min'")
    assert run(samples.due([part], authority=SYSTEM)) == [part]
    assert run(samples.look(part, authority=SYSTEM)) is True


def test_while_one_looks_another_leaves_it_alone(connect) -> None:  # type: ignore[no-untyped-def]
    run(samples.look(Part.WORKERS, authority=SYSTEM))
    execute("update shiftboss_sample set at = 'epoch'")
    holder = connect()
    holder.execute("begin")
    assert holder.run(samples.look(Part.WORKERS, authority=SYSTEM)) is True
    looked: list[bool] = []
    other = threading.Thread(
        target=lambda: looked.append(connect().run(samples.look(Part.WORKERS, authority=SYSTEM)))
    )
    other.start()
    other.join(20)
    assert looked == [False]
    holder.execute("commit")


def test_every_part_is_quick_or_may_take_its_time() -> None:
    assert sorted([*LIGHT, *HEAVY]) == sorted(Part)


def test_only_the_system_looks() -> None:
    for verb in (
        samples.look(Part.COUNTS, authority=Owner("kim")),
        samples.due([Part.COUNTS], authority=Owner("kim")),
        samples.samples(authority=Owner("kim")),
        marks.note(authority=Owner("kim")),
        marks.marks(authority=Owner("kim"), back_seconds=60),
    ):
        with pytest.raises(NotAllowed):
            run(verb)  # type: ignore[arg-type]


@pytest.mark.requirement("B9")
def test_a_new_version_and_a_lost_worker_are_marked_once() -> None:
    worker, silent = a_worker(), a_worker()
    says(worker)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '90 s' where id = %s", silent)
    assert run(marks.note(authority=SYSTEM)) == 2
    assert run(marks.note(authority=SYSTEM)) == 0
    deploy, lost = sorted(run(marks.marks(authority=SYSTEM, back_seconds=3600)), key=lambda mark: mark.kind)
    assert (deploy.kind, deploy.subject, deploy.facts) == ("deploy", "v7", {"pools": ["default"]})
    assert (lost.kind, lost.subject, lost.facts["host"]) == ("worker_lost", str(silent), "web-1")

    execute("update shiftboss_mark set at = at - interval '50 days'")
    assert run(marks.marks(authority=SYSTEM, back_seconds=3600)) == []
    execute("delete from shiftboss_worker")
    run(marks.note(authority=SYSTEM))
    assert scalar("select count(*) from shiftboss_mark") == 0


def test_a_rolling_restart_is_a_mark_with_the_versions_before_and_after() -> None:
    fence = a_host(programs=[{"name": "worker-default-1", "pool": "default"}])
    begun = run(rolls.begin("default", authority=SYSTEM, by="kim", reason="new code"))
    execute("update shiftboss_roll_step set code_before = 'v1'")
    for to in ("draining", "starting", "proving", "done"):
        of = run(rolls.step(authority=SYSTEM, host="web-1"))
        assert of
        move = Move(to=to, code_version="v2" if to == "done" else None)
        assert run(rolls.move(of, move, authority=SYSTEM, host="web-1", fence=fence))
    [mark] = run(marks.marks(authority=SYSTEM, back_seconds=60))
    assert (mark.kind, mark.subject) == ("roll", str(begun.id))
    assert mark.facts == {"pool": "default", "state": "done", "before": ["v1"], "after": ["v2"]}
    assert run(marks.marks(authority=SYSTEM, back_seconds=0)) == []
