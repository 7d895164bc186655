"""How the console's templates write numbers, times and foreign text.

Foreign text (names, arguments, errors) is escaped here, and what would be unseen in it is made visible.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language_info, pgettext
from django.utils.translation import gettext as _

from shiftboss.console import ages, pretty, text, traces, verdict, words
from shiftboss.console.evidence import read as evidence_of
from shiftboss.console.figures import CountKind, Sparkline, Tally
from shiftboss.console.progress import read_progress
from shiftboss.queue.jobs import JobRow
from shiftboss.queue.keys import Scope, read_key
from shiftboss.queue.store.read import EventRow, JobDetail, WorkerRow

SHOWN_CHARACTERS = 50_000
"""Of a longer document the beginning is shown; the page is asked for every two seconds."""

HANDLERS_OWN = "event"
"""The kind of the events that handlers tell."""

register = template.Library()

register.filter("number", text.number)
register.filter("rounded", lambda value: text.number(round(value)))
register.filter("duration", text.duration)
register.filter("lasts", ages.lasts)
register.filter("left", ages.left)
register.filter("waits", ages.waits)
register.filter("runs", ages.runs)
register.filter("begun", ages.since)
register.filter("is_late", verdict.is_late)
register.filter("late_after", verdict.late_after)
register.filter("is_lost", verdict.is_lost)


@register.simple_tag
def language() -> Any:
    """The language that the page really speaks: English where there is no translation into the wanted one."""
    return get_language_info(pgettext("code of the language that you translate into", "en"))


@register.filter
def visible(value: object) -> SafeString:
    """Foreign text, escaped, with unseen characters written as their codes."""
    return format_html_join(
        "",
        "{}",
        ((_code(piece) if is_code else piece,) for piece, is_code in text.pieces(str(value))),
    )


def _code(escape: str) -> SafeString:
    return format_html('<span class="code">{}</span>', escape)


@register.filter
def kilobytes(value: int | None) -> str:
    """An amount of memory given in KiB."""
    return "" if value is None else text.size(value * 1024)


@register.filter
def milliseconds(value: int | None) -> str:
    """A length of time given in milliseconds."""
    return "" if value is None else text.duration(value / 1000)


@register.filter
def task(name: str) -> SafeString:
    """A task's dotted name: its module quiet, breakable after each dot."""
    module, dot, function = name.rpartition(".")
    path = format_html_join("", "{}<wbr>", ((visible(part + "."),) for part in module.split(".") if dot))
    return format_html('<span class="task"><span class="module">{}</span>{}</span>', path, visible(function))


@register.filter
def state(name: str) -> str:
    """A job's state in words."""
    return words.spoken(words.STATES, name)


@register.filter
def meaning(name: str) -> str:
    """What a job's state means."""
    return words.spoken(words.MEANINGS, name)


@register.filter
def reason(name: str) -> str:
    """Why a job is quarantined."""
    return words.spoken(words.REASONS, name)


@register.filter
def cause(name: str) -> str:
    """Why a job's end was asked for."""
    return words.spoken(words.CAUSES, name)


@register.filter
def act(name: str) -> str:
    """What a person can do, as on its button."""
    return words.spoken(words.ACTS, name)


@register.filter
def backfill_state(name: str) -> str:
    """What a backfill does."""
    return words.spoken(words.BACKFILL_STATES, name)


@register.filter
def backfill_act(name: str) -> str:
    """What a person can do, as on the button of a backfill's page, where its subject is plain."""
    return words.spoken(words.BACKFILL_BUTTONS, name)


@register.filter
def limit(word: str) -> str:
    """How many jobs of a queue run at once."""
    return words.limit(word)


@register.filter
def kind(job: JobRow | JobDetail) -> str:
    """How a job came to be, where it is a rerun or of a backfill."""
    return words.spoken(words.KINDS, job.kind) if job.kind in words.KINDS else ""


@register.filter
def retry(name: str | None) -> str:
    """What kind of retry an attempt is, or nothing."""
    return "" if name is None else words.spoken(words.RETRY_KINDS, name)


@register.filter
def since(value: datetime) -> SafeString:
    """The time from which on something is so."""
    return _at(ages.to_second(value), "since", text.since(value, timezone.now()))


@register.filter
def scoped(key: str) -> tuple[str, str]:
    """A job's key as its enqueuer wrote it, and among whose jobs it is unique."""
    try:
        scope, owner, name = read_key(key)
    except ValueError:
        return key, ""
    if scope is Scope.GLOBAL:
        return name, _("unique among all jobs")
    if owner is None:
        return name, _("unique among the system's jobs")
    return name, _("unique among the jobs of %(owner)s") % {"owner": owner}


@register.filter
def outcome(name: str) -> str:
    """How an attempt ended."""
    return words.spoken(words.OUTCOMES, name)


@register.filter
def waited(job: JobDetail) -> float | None:
    """How many seconds after its due time the last attempt started; None where the job is due once more."""
    if job.started_at is None or job.started_at < job.due_at:
        return None
    return (job.started_at - job.due_at).total_seconds()


@register.filter
def worker_word(name: str) -> str:
    """What a worker does."""
    return words.spoken(words.WORKER_STATES, name)


@register.filter
def worker_state(worker: WorkerRow) -> str:
    """What a worker does, or that it is lost."""
    return words.spoken(words.WORKER_STATES, "lost" if verdict.is_lost(worker) else worker.state)


@register.simple_tag
def moment(value: datetime | None) -> SafeString:
    """A time: how far it is from now, the machine's form, and the exact one in UTC as its title."""
    return mark_safe("") if value is None else ages.ago(value)


def _at(value: datetime, form: str, said: str) -> SafeString:
    """A time that is written out in UTC. A script writes it in the reader's own zone; UTC stays as the title."""
    return format_html(
        '<time datetime="{}" data-form="{}" title="{}">{}</time>',
        value.astimezone(UTC).isoformat(timespec="milliseconds"),
        form,
        text.exact(value),
        said,
    )


@register.filter
def machine(value: datetime) -> str:
    """A time as scripts read it."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds")


@register.filter
def exact_text(value: datetime) -> SafeString:
    """A time to the millisecond."""
    return _at(value, "exact", text.exact(value))


@register.filter
def clock(value: datetime) -> SafeString:
    """The time of day to the second."""
    second = ages.to_second(value)
    return _at(second, "clock", f"{second:%H:%M:%S} UTC")


@register.simple_tag
def counted(tally: Tally) -> SafeString:
    """A count; one that is not exact has a sign, and says in words that there are at least, or about, so many."""
    jobs = text.number(tally.jobs)
    match tally.kind:
        case CountKind.CAPPED:
            said, sign = _("at least %(jobs)s") % {"jobs": jobs}, f"{jobs}+"
        case CountKind.ESTIMATED:
            said, sign = _("about %(jobs)s") % {"jobs": jobs}, f"≈{jobs}"
        case _:
            return conditional_escape(jobs)
    return format_html(
        '<span title="{}"><span class="unseen">{}</span><span aria-hidden="true">{}</span></span>',
        said,
        said,
        sign,
    )


@register.filter
def options(revision: str | None) -> list[tuple[str, str]]:
    """What of a task's configuration is not at its default: names and values."""
    said: dict[str, Any] = json.loads(revision) if revision else {}
    return [(name, _listed(value)) for name, value in sorted(said.items()) if name != "task"]


def _listed(value: Any) -> str:
    return " ".join(map(_listed, value)) if isinstance(value, list) else str(value)


@register.filter
def lent(worker: WorkerRow) -> list[tuple[str, dict[str, int]]]:
    """What a worker's jobs are lent: names, and how many there are, are lent and are waited for."""
    return sorted(json.loads(worker.resources).items())


@register.simple_tag
def bars(line: Sparkline) -> SafeString:
    """The bars of a sparkline, empty minutes as dashes. Numbers alone, thousands of them on a page of queues."""
    return mark_safe("".join(_bars(line)))


def _bars(line: Sparkline) -> Iterator[str]:
    def bar(kind: str, x: int, y: int, height: int) -> str:
        return f'<rect class="{kind}" x="{x:d}" y="{y:d}" width="{line.bar:d}" height="{height:d}"/>'

    for minute in line.minutes:
        if not minute.completed and not minute.not_completed:
            yield bar("none", minute.x, line.height - 1, 1)
        if minute.completed:
            yield bar("completed", minute.x, minute.completed_y, minute.completed_height)
        if minute.not_completed:
            yield bar("other", minute.x, minute.not_completed_y, minute.not_completed_height)


@register.inclusion_tag("shiftboss/_progress.html")
def progress(value: str) -> dict[str, Any]:
    """How far a job is, from the JSON text that its handler has told."""
    return {"progress": read_progress(value)}


@register.inclusion_tag("shiftboss/_document.html")
def json_document(value: str) -> dict[str, Any]:
    """A JSON text laid out for reading, its numbers as they were stored."""
    return _document(value, pretty.indented(value[: SHOWN_CHARACTERS + 1]))


def _document(whole: str, laid_out: str) -> dict[str, Any]:
    cut = len(whole) > SHOWN_CHARACTERS or len(laid_out) > 2 * SHOWN_CHARACTERS
    return {
        "text": laid_out[: 2 * SHOWN_CHARACTERS],
        "size": text.size(len(whole.encode(errors="replace"))),
        "cut": cut,
    }


@register.inclusion_tag("shiftboss/_evidence.html")
def evidence(told: str, args_sha256: str, *, is_latest: bool) -> dict[str, Any]:
    """What an attempt has kept; its output stands open where it is the latest."""
    laid_out = evidence_of(told, args_sha256=args_sha256)
    output = (laid_out.output or "").rstrip("\n")
    return {
        "evidence": laid_out,
        "output": output[-SHOWN_CHARACTERS:],
        "cut": len(output) > SHOWN_CHARACTERS,
        "is_latest": is_latest,
    }


@register.filter
def part(name: str) -> str:
    """A part of an attempt that is withheld."""
    return words.spoken(words.PARTS, name)


@register.filter
def trace_blocks(traceback: str) -> list[traces.Block]:
    """A traceback's frames; of a very long one the end, which names the error."""
    return traces.blocks(traceback[-SHOWN_CHARACTERS:])


@register.simple_tag
def event_text(event: EventRow) -> SafeString:
    """An event in a sentence where there is one, else its data."""
    data = json.loads(event.data)
    said = words.event(event.kind, data) if isinstance(data, dict) else None
    if said is not None:
        return visible(said)
    told = json.dumps(data.get("data"), ensure_ascii=False) if event.kind == HANDLERS_OWN else event.data
    return visible(told[:SHOWN_CHARACTERS]) if told != "{}" else mark_safe("")


@register.filter
def event_kind(event: EventRow) -> str:
    """What kind of event it is; one that a handler has told has the name that it was given there."""
    if event.kind == HANDLERS_OWN:
        return words.spoken(words.TOLD, str(json.loads(event.data).get("name")))
    return words.spoken(words.EVENTS, event.kind)
