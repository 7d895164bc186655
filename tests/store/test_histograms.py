"""Histograms of what has ended: written from the history, again and again, and read for charts."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection

from shiftboss.queue.authority import Owner
from shiftboss.queue.buckets import GROWTH, LAST, bucket_of, middle, percentiles
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.outcomes import Done
from shiftboss.queue.store import histograms, lease, samples
from shiftboss.queue.store.histograms import HOUR, MINUTE, TEN_MINUTES, Span
from shiftboss.queue.store.statement import Verb, run
from tests.store.making import SYSTEM, TASK, a_worker, claimed, enqueued, execute, report, rows, scalar

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B9")]

DAY = 86_400.0


@pytest.fixture(autouse=True)
def at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing again is never too early here."""
    monkeypatch.setattr(histograms, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(histograms, "REST", 0.0)


def done(worker: int, *, run_ms: int = 12, queue: str = "default") -> None:
    enqueued(queue=queue)
    [job] = claimed(worker, queue=queue)
    run(lease.complete([(job.lease, Done("null", run_ms))], authority=SYSTEM, worker_id=worker))


def failed(worker: int, *, queue: str = "default") -> None:
    enqueued(queue=queue)
    [job] = claimed(worker, queue=queue)
    run(report("fail", job.lease, worker))


def aged(back: timedelta) -> None:
    """Let all that has ended have ended so much earlier."""
    execute("update shiftboss_finished set finished_at = finished_at - %s", back)
    execute("update shiftboss_attempt set ended_at = ended_at - %s", back)


def ended_together() -> None:
    """Let all that has ended have ended within one minute, two minutes ago."""
    then = "date_trunc('minute', clock_timestamp()) - interval '110 s'"
    execute(f"update shiftboss_finished set finished_at = {then}")
    execute(f"update shiftboss_attempt set ended_at = {then}")


def written() -> None:
    """Write until nothing is left."""
    while run(histograms.write(authority=SYSTEM)):
        pass


def spans(seconds: int, *, back: float = DAY, queue: str = "", task: str = "") -> list[Span]:
    found = run(histograms.histogram(authority=SYSTEM, seconds=seconds, back_seconds=back, queue=queue, task=task))
    return [span for span in found if span.runs or span.cancelled]


def table() -> list[object]:
    return rows("select * from shiftboss_histogram order by seconds, queue, task, at")


def test_a_minute_counts_what_ended_of_all_of_each_queue_and_of_each_task() -> None:
    worker = a_worker("default", "mail", tasks=[TASK])
    done(worker, run_ms=100)
    done(worker, run_ms=100, queue="mail")
    failed(worker, queue="mail")
    ended_together()
    written()
    [all_of_it] = spans(MINUTE)
    [default] = spans(MINUTE, queue="default")
    [mail] = spans(MINUTE, queue="mail")
    [of_task] = spans(MINUTE, queue="mail", task=TASK)
    assert (all_of_it.completed, all_of_it.failed) == (2, 1)
    assert (default.completed, default.failed) == (1, 0)
    assert mail == of_task
    assert mail.runs == {bucket_of(100): 1, bucket_of(12): 1}
    assert sum(all_of_it.waits.values()) == 2


def test_what_is_written_again_comes_out_the_same_and_late_commits_are_added() -> None:
    worker = a_worker()
    done(worker)
    aged(timedelta(minutes=2))
    written()
    before = table()
    written()
    assert table() == before
    done(worker)
    aged(timedelta(minutes=2))
    written()
    assert sum(span.completed for span in spans(MINUTE)) == 2
    assert sum(span.completed for span in spans(HOUR)) == 2


def test_longer_spans_are_the_sums_of_shorter_ones() -> None:
    worker = a_worker()
    for run_ms in (5, 50, 500):
        done(worker, run_ms=run_ms)
        aged(timedelta(minutes=4))
    written()
    minutes, longer, hours = spans(MINUTE), spans(TEN_MINUTES), spans(HOUR)
    assert sum(span.completed for span in minutes) == 3
    for found in (longer, hours):
        merged: Counter[int] = Counter()
        for span in found:
            merged.update(span.runs)
        assert merged == {bucket_of(5): 1, bucket_of(50): 1, bucket_of(500): 1}
        assert sum(span.completed for span in found) == 3


def test_after_an_absence_it_goes_on_where_it_was_an_hour_at_a_time() -> None:
    worker = a_worker()
    done(worker)
    aged(timedelta(hours=3))
    passes = 1
    while run(histograms.write(authority=SYSTEM)):
        passes += 1
    assert passes in (3, 4, 5)
    assert sum(span.completed for span in spans(MINUTE)) == 1
    # every minute since then is known, also where nothing ended
    gaps = "select count(distinct at - lag) from (select at, lag(at) over (order by at) from shiftboss_histogram"
    assert scalar(f"{gaps} where seconds = 60 and queue = '') minutes") == 1


def test_jobs_that_came_are_counted_by_queue_and_never_less_than_before() -> None:
    enqueued(2)
    enqueued(1, queue="mail")
    execute("update shiftboss_job set enqueued_at = enqueued_at - interval '2 minutes'")
    written()
    execute("delete from shiftboss_job where queue = 'default'")
    written()
    found = run(histograms.histogram(authority=SYSTEM, seconds=MINUTE, back_seconds=DAY))
    assert sum(span.enqueued for span in found) == 3
    [mail] = run(histograms.histogram(authority=SYSTEM, seconds=MINUTE, back_seconds=DAY, queue="mail"))
    assert mail.enqueued == 1


def test_the_history_may_be_pruned_what_was_counted_stays() -> None:
    done(a_worker())
    aged(timedelta(minutes=2))
    written()
    execute("delete from shiftboss_finished")
    written()
    assert sum(span.completed for span in spans(MINUTE)) == 1


def test_minutes_are_dropped_after_hours_and_the_longer_spans_stay() -> None:
    done(a_worker())
    aged(timedelta(hours=6))
    written()
    assert spans(MINUTE) == []
    assert [span.completed for span in spans(TEN_MINUTES)] == [1]
    assert [span.completed for span in spans(HOUR)] == [1]


def test_it_is_not_written_again_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = a_worker()
    written()
    monkeypatch.setattr(histograms, "EVERY_SECONDS", 3600.0)
    done(worker)
    aged(timedelta(minutes=2))
    assert run(histograms.write(authority=SYSTEM)) is False
    assert spans(MINUTE) == []


def test_an_absence_is_made_up_for_at_once_and_then_the_usual_pace_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done(a_worker())
    aged(timedelta(hours=3))
    monkeypatch.setattr(histograms, "EVERY_SECONDS", 3600.0)
    written()
    assert sum(span.completed for span in spans(MINUTE)) == 1
    assert scalar("select seen ->> 'more' from shiftboss_sample where part = 'histograms'") == "false"
    before = scalar("select at from shiftboss_sample where part = 'histograms'")
    assert run(histograms.write(authority=SYSTEM)) is False
    assert scalar("select at from shiftboss_sample where part = 'histograms'") == before


def test_the_statement_counts_by_the_rule_of_the_buckets() -> None:
    lengths = [1, 2, 3, 7, 59, 1000, 86_400_000, 604_800_000, 2_000_000_000]
    worker = a_worker()
    for length in lengths:
        done(worker, run_ms=length)
    ended_together()
    written()
    [span] = spans(MINUTE)
    assert span.runs == Counter(map(bucket_of, lengths))
    [longest] = percentiles(span.runs, [1.0])
    assert longest == middle(LAST)
    assert GROWTH == 1.2


def test_indexes_by_time_learn_of_new_pages() -> None:
    done(a_worker())
    run(histograms.summarize(authority=SYSTEM))
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_class where relname like 'shiftboss_attempt%ended_at%'")
        assert cursor.fetchone()[0] >= 1


def test_nobody_but_the_system_reads_or_writes_them() -> None:
    with pytest.raises(NotAllowed):
        run(histograms.write(authority=Owner("kim")))
    with pytest.raises(NotAllowed):
        run(histograms.histogram(authority=Owner("kim"), seconds=60, back_seconds=60))


def test_the_row_of_a_writing_that_has_just_begun_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Verb[bool]:
        raise RuntimeError("killed")
        yield

    monkeypatch.setattr(histograms, "_write", fails)
    with pytest.raises(RuntimeError):
        run(histograms.write(authority=SYSTEM))
    assert run(samples.samples(authority=SYSTEM))[histograms.PART].took_ms == 0
