"""How the pages of rolling restarts write what is noted of them."""

from django import template
from django.utils.translation import gettext as _

from shiftboss.console import text, words
from shiftboss.queue.store.rolls import RollRow, StepRow

register = template.Library()

ROLL_MARKS = {"running": "running", "done": "completed", "stopped": "failed", "cancelled": "cancelled"}
STEP_MARKS = {
    "draining": "available",
    "starting": "available",
    "proving": "running",
    "done": "completed",
    "failed": "failed",
}
"""How states are drawn; the others stand still."""


@register.filter
def roll_state(name: str) -> str:
    """How a roll stands."""
    return words.spoken(words.ROLL_STATES, name)


@register.filter
def roll_mark(name: str) -> str:
    """How that is drawn."""
    return ROLL_MARKS.get(name, "")


@register.filter
def step_state(step: StepRow) -> str:
    """What a worker's turn has come to."""
    if step.state == "done" and step.worker_after is None:
        return _("it was down, and stays down")
    return words.spoken(words.STEP_STATES, step.state)


@register.filter
def step_mark(name: str) -> str:
    """How that is drawn."""
    return STEP_MARKS.get(name, "")


@register.filter
def roll_stands(row: RollRow) -> str:
    """What becomes of a roll, and what that means."""
    match row.state:
        case "running" if row.silent_seconds is not None:
            return _("It waits for a host whose agent is silent, and stops where that goes on for a minute.")
        case "running":
            return _("One worker at a time: the others go on.")
        case "stopped":
            return _("%(why)s. The workers after it were not touched.") % {"why": text.visible(row.why or "")}
        case "cancelled":
            return _("No further worker was touched.")
    return _("All workers have come up anew.")


@register.filter
def versions(row: RollRow | StepRow) -> str:
    """The code versions before and, once there are any, after."""
    before = _said(row.code_before)
    return f"{before} → {_said(row.code_after)}" if row.code_after else before


def _said(found: str | list[str] | None) -> str:
    given = [found] if isinstance(found, str) else found or []
    return ", ".join(map(text.visible, given)) or "–"
