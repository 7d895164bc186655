"""How the pages of hosts and programs write what is noted of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.utils.safestring import SafeString

from shiftboss.console import ages, commands, text, words
from shiftboss.console.short import measured as all_measured
from shiftboss.console.short import told
from shiftboss.permissions import Act
from shiftboss.queue.shortage import Shortage
from shiftboss.queue.store.commands import CommandRow

register = template.Library()


@register.filter
def program_state(name: str) -> str:
    """What a program does."""
    return text.visible(words.spoken(words.PROGRAM_STATES, name))


@register.filter
def command_state(name: str) -> str:
    """How a command stands."""
    return words.spoken(words.COMMAND_STATES, name)


@register.filter
def command_title(row: CommandRow) -> str:
    """What was asked."""
    return commands.title(row)


@register.filter
def command_stands(row: CommandRow) -> str:
    """What became of it."""
    return commands.stands(row)


@register.filter
def ended(life: Any) -> str:
    """How a life ended; of whatever has an ending, a code and a signal."""
    return commands.ended(life.ending, life.code, life.signal)


@register.filter
def short(shortage: Shortage) -> str:
    """What a host runs short of."""
    return told(shortage)


@register.filter
def measured(resources: dict[str, Any]) -> str:
    """What a host has left."""
    return " · ".join(all_measured(resources))


@register.filter
def is_wrong(life: Any) -> bool:
    """Whether nobody wanted this end."""
    return bool(life.ending) and not life.asked and life.code != 0


@register.filter
def from_now(seconds: float) -> SafeString:
    """How long ago that was, in seconds."""
    return ages.ago(ages.to_second(datetime.now(UTC) - timedelta(seconds=seconds)))


@register.filter
def act_word(act: Act) -> str:
    """What a person can ask of a program, as on the button of its page, where its subject is plain."""
    return words.spoken(words.PROGRAM_BUTTONS, act)
