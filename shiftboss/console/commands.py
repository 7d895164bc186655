"""What was asked of hosts, in sentences: what it is, how far it is, what became of it."""

import signal
from contextlib import suppress
from typing import Any

from django.utils.translation import gettext as _

from shiftboss.console import text, words
from shiftboss.queue.store.commands import EXPIRE_SECONDS, CommandRow

UNDER_WAY = frozenset({"waiting", "claimed"})
WRONG = frozenset({"failed", "expired", "lost"})


def title(row: CommandRow) -> str:
    """What is asked, of what."""
    name = text.visible(row.program or row.pool or "")
    match row.verb:
        case "start":
            return _("Start %(program)s") % {"program": name}
        case "drain":
            return _("Drain %(program)s") % {"program": name}
        case "stop":
            return _("Stop %(program)s") % {"program": name}
        case "kill":
            return _("Kill %(program)s") % {"program": name}
        case "restart":
            return _("Restart %(program)s") % {"program": name}
        case "tail":
            return _("Show the log of %(program)s") % {"program": name}
        case "scale":
            return _("Scale pool %(pool)s to %(count)s") % {"pool": name, "count": text.number(row.count or 0)}
    return f"{row.verb} {name}"


def stands(row: CommandRow) -> str:
    """How far it is, or what became of it, and what that means for whoever asked."""
    match row.state:
        case "waiting":
            return _("It waits for the agent of %(host)s, which looks for such twice a second.") % _host(row)
        case "claimed" if row.progress:
            return _("The agent of %(host)s is at it: %(progress)s") % {
                **_host(row),
                "progress": text.visible(row.progress),
            }
        case "claimed":
            return _("The agent of %(host)s is at it.") % _host(row)
        case "failed":
            return text.visible(str((row.result or {}).get("error") or _("Its agent says no more.")))
        case "expired":
            return _(
                "No agent of %(host)s took it within %(seconds)s, so it is not done any more. Nothing was changed."
            ) % {**_host(row), "seconds": text.duration(EXPIRE_SECONDS)}
        case "lost":
            return _(
                "The agent of %(host)s took it and was gone before it ended: nobody knows whether it was done."
                " Look at what runs there."
            ) % _host(row)
    return _result(row.result or {})


def _host(row: CommandRow) -> dict[str, str]:
    return {"host": text.visible(row.host)}


def _result(result: dict[str, Any]) -> str:
    states = result.get("states")
    if not states:
        return _("Nothing had to be changed.") if "states" in result else _("It was done.")
    return "; ".join(
        _("%(program)s is %(state)s")
        % {"program": text.visible(str(name)), "state": words.spoken(words.PROGRAM_STATES, str(state))}
        for name, state in states.items()
    )


def ended(ending: str | None, code: int | None, number: int | None) -> str:
    """How a life of a program ended, by what is noted of it."""
    match ending:
        case None:
            return ""
        case "code":
            return _("exit code %(code)s") % {"code": code}
        case "signal":
            return _("signal %(signal)s") % {"signal": _signal(number)}
    return _("nobody saw how")


def _signal(number: int | None) -> str:
    with suppress(ValueError, TypeError):
        return f"{number} ({signal.Signals(number or 0).name})"
    return str(number)
