"""The charts of the overview: what they draw from the histograms, and what happened meanwhile."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from shiftboss.console import charts
from shiftboss.console.charts import STRETCHES, Charts
from shiftboss.queue.buckets import bucket_of, middle
from shiftboss.queue.store import histograms, marks
from shiftboss.queue.store.histograms import Span
from shiftboss.queue.store.marks import Mark
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.store.making import execute

pytestmark = pytest.mark.requirement("B9")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def span(minute: int, *, completed: int = 0, waits: dict[int, int] | None = None, **more: int) -> Span:
    given = {"cancelled": 0, "discarded": 0, "failed": 0, "lost": 0, "enqueued": 0} | more
    return Span(at=NOON + timedelta(minutes=minute), completed=completed, waits=waits or {}, runs={}, **given)


def made(*spans: Span, happened: tuple[Mark, ...] = (), queue: str = "") -> Charts:
    return charts.made(spans, happened, STRETCHES["15m"], queue=queue)


def data(drawn: Charts, name: str) -> dict[str, Any]:
    [chart] = [chart for chart in drawn.charts if chart.id == name]
    told: dict[str, Any] = json.loads(chart.data)
    return told


def test_the_axis_is_even_and_a_span_that_nobody_wrote_is_a_gap() -> None:
    drawn = data(made(span(0, completed=5), span(2, completed=7, discarded=1)), "chart-throughput")
    assert [time - int(NOON.timestamp()) for time in drawn["times"]] == [0, 60, 120]
    values = {one["label"]: one["values"] for one in drawn["series"]}
    assert values["completed"] == [5, None, 7]
    assert values["discarded or cancelled"] == [0, None, 1]


def test_percentiles_are_those_of_the_jobs_of_each_span() -> None:
    drawn = made(span(0, completed=100, waits={bucket_of(10): 94, bucket_of(5000): 6}), span(1, completed=1))
    waits = {one["label"]: one["values"] for one in data(drawn, "chart-wait")["series"]}
    short, long = (round(middle(bucket_of(length)) / 1000, 6) for length in (10, 5000))
    assert waits == {"p50": [short, None], "p95": [long, None], "p99": [long, None]}


def test_the_table_holds_what_is_drawn_the_newest_first() -> None:
    drawn = made(span(0, completed=1234, failed=2), span(1), span(3, lost=1))
    assert [begin for begin, _cells in drawn.rows] == ["12:03", "12:02", "12:01", "12:00"]
    assert all(len(cells) == len(drawn.columns) for _begin, cells in drawn.rows)
    oldest = dict(zip(drawn.columns, drawn.rows[-1][1], strict=True))
    assert (oldest["Completed"], oldest["Failed"], oldest["Wait p50"]) == ("1,234", "2", "–")


def test_without_spans_there_is_nothing_to_draw() -> None:
    assert made().charts == made().rows == []


def test_what_happened_is_told_and_marked_and_of_another_queue_it_is_not() -> None:
    happened = (
        Mark("pause", "mail", NOON, {"after": {"state": "paused"}}),
        Mark("limit", "news", NOON, {"after": {"state": "sequential"}}),
        Mark("worker_lost", "7", NOON, {"host": "web-1\u202e"}),
        Mark("deploy", "<v8>", NOON, {}),
        Mark("roll", "7", NOON, {"pool": None, "before": ["v7"], "after": ["<v8>"]}),
        Mark("roll", "6", NOON, {"pool": "mail", "before": [], "after": []}),
    )
    told = [one.said for one in made(span(0), happened=happened).happenings]
    assert told == [
        "queue mail paused",
        "limit of queue news: one at a time in strict order",
        r"worker #7 on web-1\u202e lost",
        "version <v8> first seen",
        "rolling restart #7 of all pools, v7 → <v8>",
        "rolling restart #6 of pool mail, – → –",
    ]
    of_mail = made(span(0), happened=happened, queue="mail")
    assert len(of_mail.happenings) == 5
    assert {mark["label"] for mark in data(of_mail, "chart-run")["marks"]} == {
        one.said for one in of_mail.happenings
    }


@pytest.mark.django_db
def test_the_overview_draws_what_was_written_for_the_stretch_and_the_queue_of_its_address(browser: Client) -> None:
    worker = scenes.worker("default", "mail")
    scenes.completed_job(worker)
    scenes.completed_job(worker, queue="mail")
    execute("update shiftboss_finished set finished_at = finished_at - interval '2 minutes'")
    run(histograms.write(authority=scenes.SYSTEM))
    for address, completed in {
        "/": 2,
        "/?span=24h": 2,
        "/?span=15m&queue=mail": 1,
        "/?span=7d&queue=no": 0,
    }.items():
        page = browser.get(address).content.decode()
        found = re.search(r'<data id="chart-throughput-data" value="([^"]*)" hidden>', page)
        if not completed:
            assert found is None
            assert "Nothing to draw yet" in page
            continue
        assert found
        [values] = [
            one["values"] for one in json.loads(unescape(found[1]))["series"] if one["label"] == "completed"
        ]
        assert sum(value or 0 for value in values) == completed
        assert 'id="chart-throughput" hx-preserve="true" data-chart="chart-throughput-data"' in page


@pytest.mark.django_db
def test_acts_and_marks_stand_below_the_charts(browser: Client) -> None:
    from shiftboss import acts
    from tests.acts.people import person

    scenes.worker()
    acts.pause("mail", by=person(), reason="the provider is down")
    execute("update shiftboss_worker set code_version = 'v8'")
    run(marks.note(authority=scenes.SYSTEM))
    page = browser.get("/").content.decode()
    assert re.search(r'<li class="pause"><time[^>]*>[^<]*</time> <bdi>queue mail paused</bdi>', page)
    assert "version v8 first seen" in page


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["span=2h", "span=", "queue=%00", "queue=" + "x" * 300])
def test_an_address_that_cannot_be_read_is_refused(browser: Client, query: str) -> None:
    assert browser.get(f"/?{query}").status_code == 400
