"""The charts of the overview, from the histograms: how much ended, how long it waited and ran, what failed.

A chart is drawn from JSON; the same numbers stand behind all of them as one table. They are made once for all who
look at the same span, and again after `KEPT_SECONDS`: histograms are written each half minute.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from shiftboss import conf
from shiftboss.console import text, words
from shiftboss.console.kept import Kept
from shiftboss.permissions import Act
from shiftboss.queue.authority import Staff
from shiftboss.queue.buckets import percentiles
from shiftboss.queue.store import histograms, marks
from shiftboss.queue.store.histograms import HOUR, MINUTE, TEN_MINUTES, Span
from shiftboss.queue.store.marks import Mark
from shiftboss.queue.store.statement import run

KEPT_SECONDS = 10.0
SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Stretch:
    """How far back is looked, in spans of how many seconds."""

    word: str
    name: Promise
    back_seconds: int
    span_seconds: int
    every: Promise


STRETCHES = {
    stretch.word: stretch
    for stretch in (
        Stretch("15m", gettext_lazy("15 minutes"), 900, MINUTE, gettext_lazy("minute")),
        Stretch("3h", gettext_lazy("3 hours"), 3 * 3600, MINUTE, gettext_lazy("minute")),
        Stretch("24h", gettext_lazy("24 hours"), 86_400, TEN_MINUTES, gettext_lazy("ten minutes")),
        Stretch("7d", gettext_lazy("7 days"), 7 * 86_400, HOUR, gettext_lazy("hour")),
    )
}
USUAL = "3h"


@dataclass(frozen=True, slots=True)
class Chart:
    """One drawing: its name, what a reader who cannot see it is told, and its numbers as JSON."""

    id: str
    name: str
    said: str
    data: str


@dataclass(frozen=True, slots=True)
class Happening:
    """A mark in a sentence."""

    at: datetime
    kind: str
    said: str


@dataclass(frozen=True, slots=True)
class Charts:
    """The charts of a stretch, the table behind them, and what happened meanwhile, the newest first.

    A row of the table is the begin of its span and what stands beside it, as texts.
    """

    charts: list[Chart]
    columns: list[str]
    rows: list[tuple[str, list[str]]]
    happenings: list[Happening]


_kept: Kept[Charts] = Kept()


def charts(stretch: Stretch, *, authority: Staff, queue: str = "") -> Charts:
    """The charts of all queues that the authority sees as a whole, or of one. Raises NotAllowed."""
    key = (conf.get().database, stretch.word, queue, get_language(), authority)
    return _kept.get(key, lambda: _read(stretch, queue, authority), seconds=KEPT_SECONDS).value


def forget() -> None:
    """Keep none, as a process that has just begun."""
    _kept.forget()


def _read(stretch: Stretch, queue: str, authority: Staff) -> Charts:
    back = stretch.back_seconds
    spans = run(
        histograms.histogram(authority=authority, seconds=stretch.span_seconds, back_seconds=back, queue=queue)
    )
    happened = run(marks.marks(authority=authority, back_seconds=back))
    return made(spans, happened, stretch, queue=queue)


def made(spans: Sequence[Span], happened: Sequence[Mark], stretch: Stretch, *, queue: str = "") -> Charts:
    """The charts of these spans, on an even axis of time; a span that nobody has written is a gap."""
    axis = _axis(spans, stretch.span_seconds)
    told = [_told(mark) for mark in happened if not (queue and mark.kind in _ACTS and mark.subject != queue)]
    drawn = {
        "times": [int(at.timestamp()) for at, _span in axis],
        "marks": [{"time": int(one.at.timestamp()), "label": one.said} for one in reversed(told)],
    }
    waits, runs = [[_percentiles(span, of) for _at, span in axis] for of in (_waits, _runs)]
    return Charts(
        charts=[
            _throughput(axis, drawn, stretch),
            _lengths("chart-wait", _("Wait"), _("How long jobs waited to be started, once due"), waits, drawn),
            _lengths("chart-run", _("Run"), _("How long attempts ran"), runs, drawn),
            _failures(axis, drawn, stretch),
        ]
        if axis
        else [],
        columns=[
            _("In"),
            _("Completed"),
            _("Discarded"),
            _("Cancelled"),
            *(_("Wait %(share)s") % {"share": name} for name in _names()),
            *(_("Run %(share)s") % {"share": name} for name in _names()),
            _("Failed"),
            _("Lost"),
        ],
        rows=[
            (_begin(at, stretch), _row(span, wait, ran))
            for (at, span), wait, ran in reversed(list(zip(axis, waits, runs, strict=True)))
        ],
        happenings=told,
    )


Axis = list[tuple[datetime, Span | None]]
Lengths = list[float | None]


def _axis(spans: Sequence[Span], seconds: int) -> Axis:
    known = {int(span.at.timestamp()): span for span in spans}
    if not known:
        return []
    return [
        (datetime.fromtimestamp(at, UTC), known.get(at)) for at in range(min(known), max(known) + seconds, seconds)
    ]


def _waits(span: Span) -> Any:
    return span.waits


def _runs(span: Span) -> Any:
    return span.runs


def _percentiles(span: Span | None, of: Callable[[Span], Any]) -> Lengths:
    """In seconds."""
    found = percentiles(of(span), SHARES) if span else [None] * len(SHARES)
    return [None if length is None else round(length / 1000, 6) for length in found]


def _names() -> list[str]:
    return [f"p{share * 100:g}" for share in SHARES]


def _throughput(axis: Axis, drawn: dict[str, Any], stretch: Stretch) -> Chart:
    series = [
        _counted(_("in"), axis, lambda span: span.enqueued),
        _counted(_("completed"), axis, lambda span: span.completed, kind="bars"),
        _counted(_("discarded or cancelled"), axis, lambda span: span.discarded + span.cancelled),
    ]
    completed = sum(span.completed for _at, span in axis if span)
    said = _("Jobs in and out per %(every)s: %(completed)s completed in all") % {
        "every": stretch.every,
        "completed": text.number(completed),
    }
    return _chart("chart-throughput", _("Throughput"), said, "jobs", series, drawn)


def _failures(axis: Axis, drawn: dict[str, Any], stretch: Stretch) -> Chart:
    series = [
        _counted(_("failed"), axis, lambda span: span.failed, kind="bars", wrong=True),
        _counted(_("lost"), axis, lambda span: span.lost, wrong=True),
    ]
    failed = sum(span.failed + span.lost for _at, span in axis if span)
    said = _("Attempts that failed or were lost per %(every)s: %(failed)s in all") % {
        "every": stretch.every,
        "failed": text.number(failed),
    }
    return _chart("chart-failures", _("Failures"), said, "jobs", series, drawn)


def _lengths(id: str, name: str, meaning: str, lengths: list[Lengths], drawn: dict[str, Any]) -> Chart:
    series = [
        {"label": share, "values": list(values), "kind": "line", "wrong": False}
        for share, values in zip(_names(), zip(*lengths, strict=True), strict=False)
    ]
    latest = next((one for one in reversed(lengths) if one[0] is not None), None)
    if latest is None:
        said = _("%(meaning)s: none ended") % {"meaning": meaning}
    else:
        listed = ", ".join(
            f"{share} {text.duration(length)}"
            for share, length in zip(_names(), latest, strict=True)
            if length is not None
        )
        said = _("%(meaning)s; latest: %(lengths)s") % {"meaning": meaning, "lengths": listed}
    return _chart(id, name, said, "seconds", series, drawn)


def _counted(
    label: str, axis: Axis, of: Callable[[Span], int], *, kind: str = "line", wrong: bool = False
) -> dict[str, Any]:
    values = [None if span is None else int(of(span)) for _at, span in axis]
    return {"label": label, "values": values, "kind": kind, "wrong": wrong}


def _chart(id: str, name: str, said: str, unit: str, series: list[dict[str, Any]], drawn: dict[str, Any]) -> Chart:
    return Chart(id, name, said, json.dumps({"unit": unit, "series": series, **drawn}, ensure_ascii=False))


def _begin(at: datetime, stretch: Stretch) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if stretch.back_seconds >= 86_400 else f"{at:%H:%M}"


def _row(span: Span | None, wait: Lengths, ran: Lengths) -> list[str]:
    lengths = ["–" if length is None else text.duration(length) for length in [*wait, *ran]]
    if span is None:
        return ["–"] * 4 + lengths + ["–"] * 2
    numbers = [span.enqueued, span.completed, span.discarded, span.cancelled]
    return [*map(text.number, numbers), *lengths, text.number(span.failed), text.number(span.lost)]


_ACTS = {Act.PAUSE.value, Act.RESUME.value, Act.LIMIT.value}


def _told(mark: Mark) -> Happening:
    subject = text.visible(mark.subject)
    match mark.kind:
        case "deploy":
            said = _("version %(version)s first seen") % {"version": subject}
        case "worker_lost":
            host = text.visible(str(mark.facts.get("host", "")))
            said = _("worker %(id)s on %(host)s lost") % {"id": f"#{subject}", "host": host}
        case "roll":
            said = _rolled(subject, mark)
        case Act.PAUSE.value:
            said = _("queue %(queue)s paused") % {"queue": subject}
        case Act.RESUME.value:
            said = _("queue %(queue)s resumed") % {"queue": subject}
        case _:
            limit = words.limit(str(mark.facts["after"].get("state", "")))
            said = _("limit of queue %(queue)s: %(limit)s") % {"queue": subject, "limit": limit}
    return Happening(mark.at, mark.kind, said)


def _rolled(id: str, mark: Mark) -> str:
    """A rolling restart, with the versions that it led from and to."""
    pool = mark.facts.get("pool")
    before, after = (", ".join(map(text.visible, mark.facts.get(key) or [])) for key in ("before", "after"))
    known = {"id": f"#{id}", "pool": text.visible(str(pool)), "before": before or "–", "after": after or "–"}
    if pool is None:
        return _("rolling restart %(id)s of all pools, %(before)s → %(after)s") % known
    return _("rolling restart %(id)s of pool %(pool)s, %(before)s → %(after)s") % known
