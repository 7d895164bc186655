"""The strip above every page: the verdict, and the few figures by which an operator sees how the whole stands."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import formats, timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from shiftboss.console import addresses, ages, words
from shiftboss.console.narrowing import last_known_to, seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.text import duration, number, visible
from shiftboss.console.verdict import TOLERATED_WAIT_SECONDS, Finding, findings
from shiftboss.console.whole import Flow, Whole
from shiftboss.queue.states import State
from shiftboss.queue.store.samples import LIGHT, Part

MARGIN_SPENT = 0.5
"""A heartbeat that is late by this share of its lease is worth a look."""

STEADY = 0.5
"""Jobs a minute more or fewer than this are no change."""


@dataclass(frozen=True, slots=True)
class Vital:
    """One figure: what it counts, what is said below it, and where that is to be seen."""

    name: str
    value: str
    detail: str
    address: str
    wrong: bool = False


def shown(request: HttpRequest, seen: Whole | None = None) -> dict[str, Any]:
    """The context of `_strip.html`; `seen` where the page has asked already."""
    if seen is None:
        with bounded():
            seen = seen_by(person_of(request))
    return _context(request, seen)


def remembered(request: HttpRequest) -> dict[str, Any]:
    """The strip as this process last saw it, where the database does not answer; empty where it never did."""
    seen = last_known_to(person_of(request))
    if seen is None or not seen.is_known:
        return {}
    age = max(seen.ages[part] for part in LIGHT if part in seen.ages)
    return _context(request, seen) | {"as_of": timezone.now() - timedelta(seconds=age), "unanswered": True}


def _context(request: HttpRequest, seen: Whole) -> dict[str, Any]:
    found = findings(seen)
    return {
        "headline": found[0],
        "headline_address": _leads_to(request, found[0]),
        "others": sum(finding.is_wrong for finding in found[1:]),
        "vitals": vitals(request, seen),
        "scope": words.scope(person_of(request).authority),
        "as_of": _old(seen),
    }


def _old(seen: Whole) -> datetime | None:
    """When the figures were seen, where that is not just now."""
    if seen.overdue_seconds is None:
        return None
    return ages.to_second(timezone.now() - timedelta(seconds=seen.overdue_seconds))


def _leads_to(request: HttpRequest, finding: Finding) -> str:
    return addresses.of(request, finding.page or "overview") + finding.query


def vitals(request: HttpRequest, seen: Whole) -> list[Vital]:
    """The figures, in the order in which they are looked at. One that was never seen says so."""
    jobs = addresses.of(request, "jobs")
    if not seen.tells_of_queues:
        return [_lag(seen, addresses.of(request, "workers"))]
    made = [
        (Part.LEASES, _stuck(seen, jobs)),
        (Part.WORKERS, _lag(seen, addresses.of(request, "workers"))),
        (Part.QUARANTINE, _quarantine(seen, addresses.of(request, "quarantine"))),
        (Part.WAITS, _oldest(seen, jobs)),
        (Part.RATES, _flow(seen, addresses.of(request, "overview"))),
        (Part.RATES, _drain(seen, addresses.of(request, "queues"))),
    ]
    return [
        vital if part in seen.ages else Vital(vital.name, "–", _("not yet known"), vital.address)
        for part, vital in made
    ]


def _stuck(seen: Whole, jobs: str) -> Vital:
    running = sum(count.jobs for count in seen.counts if count.state is State.RUNNING)
    detail = _("of %(jobs)s running") % {"jobs": number(running)}
    return Vital(_("Stuck leases"), number(seen.stuck), detail, f"{jobs}?state=running", wrong=bool(seen.stuck))


def _lag(seen: Whole, workers: str) -> Vital:
    name, lag, worst = _("Heartbeat lag"), seen.workers.lag, seen.workers.worst_lag
    if lag is None or worst is None:
        return Vital(name, "–", _("no live worker"), workers, wrong=True)
    detail = _("of a lease of %(lease)s; worst %(worst)s") % {
        "lease": duration(lag.lease_seconds),
        "worst": duration(max(worst.seconds, lag.seconds)),
    }
    return Vital(
        name, duration(lag.seconds), detail, workers, wrong=lag.seconds > MARGIN_SPENT * lag.lease_seconds
    )


def _quarantine(seen: Whole, quarantine: str) -> Vital:
    fresh = seen.held_fresh
    detail = _("+%(jobs)s in the last hour") % {"jobs": number(fresh)} if fresh else _("none in the last hour")
    return Vital(_("Quarantined"), number(seen.held), detail, quarantine, wrong=bool(fresh))


def _oldest(seen: Whole, jobs: str) -> Vital:
    name = _("Oldest waits")
    waits = [
        (count.oldest_seconds, count.queue)
        for count in seen.counts
        if count.state is State.AVAILABLE and count.oldest_seconds is not None
    ]
    if not waits:
        return Vital(name, "–", _("nothing is due"), f"{jobs}?state=available")
    seconds, queue = max(waits)
    address = f"{jobs}?{urlencode({'state': 'available', 'queue': queue})}"
    detail = _("in %(queue)s") % {"queue": visible(queue)}
    return Vital(name, ages.waits(seconds, seen), detail, address, wrong=seconds > TOLERATED_WAIT_SECONDS)


def _flow(seen: Whole, overview: str) -> Vital:
    flow = seen.flow
    value = _("%(came)s, %(went)s") % {"came": per_second(flow.came), "went": per_second(flow.went)}
    detail = _("%(other)s not completed") % {"other": per_second(flow.not_completed)}
    return Vital(_("Jobs in, out"), value, detail, overview + "#throughput")


def _drain(seen: Whole, queues: str) -> Vital:
    available = sum(count.jobs for count in seen.counts if count.state is State.AVAILABLE)
    value, stalls = drains(available, seen.flow)
    waits = max(
        (count.oldest_seconds or 0.0 for count in seen.counts if count.state is State.AVAILABLE), default=0.0
    )
    wrong = stalls and waits > TOLERATED_WAIT_SECONDS
    detail = _("%(jobs)s available") % {"jobs": number(available)}
    return Vital(_("Drained"), value, detail, queues, wrong=wrong)


def drains(available: int, flow: Flow) -> tuple[str, bool]:
    """When so many jobs are done at the present rate, or why never; and whether nothing moves at all."""
    if not available:
        return _("now"), False
    gained = flow.went - flow.came
    if not flow.went:
        return _("never"), True
    if gained > STEADY:
        return _("in %(time)s") % {"time": duration(available * 60 / gained)}, False
    if gained < -STEADY:
        return _("grows by %(rate)s") % {"rate": per_second(-gained)}, False
    return _("stays"), False


def per_second(jobs_per_minute: float) -> str:
    """A rate as people read it: 0, 0.2/s, 12/s, 1,234/s; slow ones a minute."""
    rate = jobs_per_minute / 60
    if not jobs_per_minute:
        return "0"
    if rate < 0.1:
        return _("%(n)s/min") % {"n": number(round(jobs_per_minute))}
    return _("%(n)s/s") % {"n": formats.number_format(rate, 1) if rate < 10 else number(round(rate))}
