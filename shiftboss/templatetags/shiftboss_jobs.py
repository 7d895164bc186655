"""How the list of jobs writes its cells. Foreign text is escaped here, with what would be unseen made visible."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from shiftboss.console import text, words
from shiftboss.console.columns import VIEW_ARGUMENTS, Column
from shiftboss.console.joblist import Line
from shiftboss.queue.states import State
from shiftboss.templatetags.shiftboss_console import milliseconds, moment, scoped, visible

NOTHING = mark_safe('<span class="zero">–</span>')
ZERO = mark_safe('<span class="zero">0</span>')
CUT_CHARACTERS = 200

register = template.Library()


@register.simple_tag(takes_context=True)
def cell(context: Context, line: Line, column: Column) -> SafeString:
    """The cell of a column in a job's row."""
    said = _member(line, column) if column.path else _CELLS[column.name](line, context)
    empty = said in (NOTHING, ZERO)
    classes = " ".join(
        name
        for name, holds in (("n", column.is_number), ("nothing", empty), (column.name, column.name == "queue"))
        if holds
    )
    return format_html(
        '<td{} data-label="{}">{}</td>',
        format_html(' class="{}"', classes) if classes else "",
        text.visible(str(column.title)),
        said,
    )


def _member(line: Line, column: Column) -> SafeString:
    if column.name not in line.members:
        return format_html('<span class="small" title="{}">{}</span>', VIEW_ARGUMENTS, _("not shown"))
    value = line.members[column.name]
    return NOTHING if value is None else format_html('<span class="value id">{}</span>', visible(_cut(value)))


def _cut(text: str) -> str:
    return text if len(text) <= CUT_CHARACTERS else text[: CUT_CHARACTERS - 1] + "…"


def _text(value: str | None) -> SafeString:
    if not value:
        return NOTHING
    return format_html('<span class="value"><bdi>{}</bdi></span>', visible(_cut(value)))


def _state(line: Line, context: Context) -> SafeString:
    state = line.job.state
    return format_html(
        '<span class="state {}" title="{}">{}</span>',
        state,
        words.spoken(words.MEANINGS, state),
        words.spoken(words.STATES, state),
    )


def _queue(line: Line, context: Context) -> SafeString:
    job = line.job
    paused = job.queue in context["paused"] and job.state in context["waiting"]
    tag = (
        format_html(' <a class="tag" href="{}">{}</a>', _address(context, "queues"), _("paused")) if paused else ""
    )
    return format_html('<span class="value"><bdi>{}</bdi>{}</span>', visible(job.queue), tag)


def _key(line: Line, context: Context) -> SafeString:
    if line.found.key is None:
        return NOTHING
    name, scope = scoped(line.found.key)
    return format_html('<span class="value" title="{}"><bdi>{}</bdi></span>', scope, visible(_cut(name)))


def _tags(line: Line, context: Context) -> SafeString:
    if not line.found.tags:
        return NOTHING
    tags = format_html_join(
        " ",
        '<span class="tag" title="{}"><bdi>{}</bdi></span>',
        ((text.visible(tag), visible(tag)) for tag in line.found.tags),
    )
    return format_html('<span class="value">{}</span>', tags)


def _count(value: int) -> SafeString:
    return format_html("{}", str(value)) if value else ZERO


def _of(taken: int, limit: int) -> SafeString:
    if not taken:
        return ZERO
    return format_html("{}", _("%(n)s of %(limit)s") % {"n": taken, "limit": limit})


def _time(value: datetime | None) -> SafeString:
    return NOTHING if value is None else moment(value)


def _worker(line: Line, context: Context) -> SafeString:
    return NOTHING if line.job.worker_id is None else format_html("#{}", str(line.job.worker_id))


def _link(context: Context, name: str, **arguments: int | None) -> SafeString:
    [number] = arguments.values()
    if number is None:
        return NOTHING
    return format_html('<a href="{}">{}</a>', _address(context, name, **arguments), str(number))


def _address(context: Context, name: str, **arguments: Any) -> str:
    match = context["request"].resolver_match
    return reverse(f"shiftboss:{name}", kwargs=arguments, current_app=match.namespace if match else None)


def _took(line: Line, context: Context) -> SafeString:
    return NOTHING if line.job.run_ms is None else format_html("{}", milliseconds(line.job.run_ms))


_CELLS: dict[str, Callable[[Line, Context], SafeString]] = {
    "state": _state,
    "queue": _queue,
    "owner": lambda line, _context: _text(line.job.owner),
    "key": _key,
    "tags": _tags,
    "priority": lambda line, _context: _count(line.job.priority),
    "failures": lambda line, _context: _of(line.job.failures, line.job.failure_limit),
    "losses": lambda line, _context: _of(line.job.losses, line.job.loss_limit),
    "worker": _worker,
    "enqueued": lambda line, _context: _time(line.job.enqueued_at),
    "due": lambda line, _context: _time(line.job.due_at),
    "started": lambda line, _context: _time(line.job.started_at),
    "quarantined": lambda line, _context: _time(
        line.job.quarantined_at if line.job.state is State.QUARANTINED else None
    ),
    "took": _took,
    "finished": lambda line, _context: _time(line.job.finished_at),
    "rerun_of": lambda line, context: _link(context, "job", job_id=line.job.rerun_of),
    "batch": lambda line, context: _link(context, "backfill", backfill_id=line.job.batch_id),
}
