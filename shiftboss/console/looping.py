"""A program's loop of crashes as its page tells of it: why it is, or was, held back. Plain functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from shiftboss.console import text
from shiftboss.queue.store.holds import HoldRow

LOOKED = 3
"""So many of the newest holds of a program are read."""

TOLD_SECONDS = 86_400.0
"""For so long it is told of a loop that is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One of the ends that made the loop. `jobs`: what was in hand, None where nobody knows."""

    host: str
    program: str
    at: datetime
    ending: str
    code: int | None
    signal: int | None
    uptime_seconds: float | None
    version: str | None
    jobs: list[str] | None
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop of crashes, in words. `is_over`: the program is not held back any more."""

    hold: HoldRow
    headline: str
    is_over: bool
    over: str
    ends: list[End]
    line: str | None
    line_of: str
    version: str | None
    version_before: str | None


def told(rows: Sequence[HoldRow], now: datetime | None = None) -> Loop | None:
    """The newest of these holds, the newest first; None where nothing is to be told any more."""
    if not rows:
        return None
    hold, moment = rows[0], now or datetime.now(UTC)
    if hold.taken_up_at is not None and hold.taken_up_at < moment - timedelta(seconds=TOLD_SECONDS):
        return None
    why: Mapping[str, Any] = hold.evidence
    times, line_times = int(why.get("times") or 0), int(why.get("line_times") or 0)
    return Loop(
        hold=hold,
        headline=_headline(hold, times, float(why.get("seconds") or 0.0)),
        is_over=hold.released_at is not None,
        over=_over(hold),
        ends=[_end(end) for end in why.get("ends") or []],
        line=why.get("line"),
        line_of=_("%(n)s of %(times)s") % {"n": text.number(line_times), "times": text.number(times)},
        version=why.get("version"),
        version_before=why.get("version_before"),
    )


def _headline(hold: HoldRow, times: int, seconds: float) -> str:
    if hold.poison_job is not None:
        return _("It died %(times)s times with one job in hand, which is quarantined as poison.") % {
            "times": text.number(times)
        }
    if times > 1:
        return _("It crashes in a loop: it ended %(times)s times in %(seconds)s, and nobody had asked it to.") % {
            "times": text.number(times),
            "seconds": text.duration(seconds),
        }
    return _("It crashes in a loop: it ended again after it had been held back.")


def _over(hold: HoldRow) -> str:
    """How it came to be held back no more; empty while it is held."""
    by = {"by": text.visible(hold.released_by or "")}
    match hold.released_as:
        case "time":
            return _("Its time was over, and it was started again.")
        case "release":
            return _("%(by)s released it.") % by
        case "start":
            return _("%(by)s started it.") % by
        case "stop":
            return _("%(by)s stopped it.") % by
        case "others":
            return _("Somebody started it on its host.")
        case "poison":
            return _("It is not held back for that.")
    return ""


def _end(end: Mapping[str, Any]) -> End:
    return End(
        host=str(end["host"]),
        program=str(end["program"]),
        at=datetime.fromisoformat(end["ended_at"]),
        ending=str(end["ending"]),
        code=end["code"],
        signal=end["signal"],
        uptime_seconds=end["uptime_seconds"],
        version=end["version"],
        jobs=end["jobs"],
        more=int(end["more_jobs"]),
    )
