"""The queues, one of them, and the acts on them: pausing, resuming, limiting, cancelling all that waits."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from shiftboss import acts, conf
from shiftboss.acts import Acted, LimitWord, Sweep, Swept
from shiftboss.console import addresses, audits, figures, filters, live, serving
from shiftboss.console.figures import QueueLine
from shiftboss.console.forms import NUMBER, LimitForm, PreviewForm, QueueForm, ReasonForm
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.views.acting import Acting, Said
from shiftboss.console.views.sweeping import Sweeping
from shiftboss.console.whole import Served, Whole
from shiftboss.permissions import VIEW_AUDIT, Act, Person
from shiftboss.queue.authority import require_queue_within
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.states import LIVE, WAITING, State
from shiftboss.queue.store import audit, queues, read, waiting
from shiftboss.queue.store.operate import Matching
from shiftboss.queue.store.queues import Limit, Limited, Pause
from shiftboss.queue.store.statement import run

MINUTES = 30
"""How far back the throughput is drawn."""

SERVING = 20
"""Workers on the page of one queue."""

ACTS_SHOWN = 8


def index(request: HttpRequest) -> HttpResponse:
    """Every queue with jobs, a worker, a pause or a limit: what it holds, how it flows, who serves it."""
    targets, person = serving.targets(conf.get().queues), person_of(request)
    with bounded():
        seen = seen_by(person)
        limits = run(queues.limits(authority=person.authority))
        waits = run(waiting.waits(list(targets), authority=person.authority)) if targets else {}
    kept = serving.objectives(targets, waits)
    lines = figures.seen_queues(seen, limits, minutes=MINUTES)
    context = {
        "queues": [(line, kept.get(line.name)) for line in lines],
        "states": [state for state in State if state in LIVE],
        "whole": seen,
        **_may(request),
    }
    return live.answer(request, "queues", context)


def show(request: HttpRequest) -> HttpResponse:
    """One queue, `?queue=NAME`: all of the same, who serves it, and what was last done to it. Raises BadFilter."""
    name = filters.queue_of(request.GET)
    person = person_of(request)
    authority, sees_audit = person.authority, person.allows(VIEW_AUDIT)
    require_queue_within(authority, name, "the page")
    targets = serving.targets(conf.get().queues)
    with bounded():
        seen = seen_by(person)
        limits = run(queues.limits(authority=authority))
        workers = serving.serving(name, run(read.workers(authority=authority)))
        waits = run(waiting.waits([name], authority=authority))
        entries = run(audit.entries(authority=authority, queue=name, limit=ACTS_SHOWN)) if sees_audit else []
    line = _line(name, seen, [one for one in limits if one.queue == name])
    context = {
        "queue": line,
        "objective": serving.objectives({n: s for n, s in targets.items() if n == name}, waits).get(name),
        "waited": serving.waited(waits.get(name, {})),
        "drained_in": serving.drained_in(_available(line), line.flow),
        "waiting": _waiting(line),
        "workers": workers[:SERVING],
        "more_workers": max(0, len(workers) - SERVING),
        "lines": audits.lines(entries),
        "whole": seen,
        **_may(request),
    }
    return live.answer(request, "queue", context)


def _may(request: HttpRequest) -> dict[str, bool]:
    person = person_of(request)
    return {
        "may_pause": person.may(Act.PAUSE),
        "may_resume": person.may(Act.RESUME),
        "may_limit": person.may(Act.LIMIT),
        "may_cancel": person.may(Act.CANCEL),
    }


def _line(name: str, seen: Whole, limits: list[Limited]) -> QueueLine:
    """The line of one queue; an empty one where nothing is known of it."""
    found = [line for line in figures.seen_queues(seen, limits, minutes=MINUTES) if line.name == name]
    nothing = figures.Sparkline.of([], minutes=MINUTES)
    return found[0] if found else QueueLine(name, figures.tally([]), None, nothing, [], None, None, Served())


def _available(line: QueueLine) -> int:
    return sum(tally.jobs for tally in line.tallies if tally.state is State.AVAILABLE)


def _waiting(line: QueueLine) -> int:
    return sum(tally.jobs for tally in line.tallies if tally.state in WAITING)


class QueueActing(Acting):
    """One act on a queue, which its form names."""

    here = "queues"
    form = QueueForm

    def leads_to(self) -> str:
        """The list of queues."""
        return addresses.of(self.request, "queues")

    @property
    def queue(self) -> str:
        """The queue that is meant. Raises BadFilter where no queue can have the name."""
        return filters.queue_of(self.request.POST if self.request.method == "POST" else self.request.GET)

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, and what the act would stop. Raises BadFilter."""
        name = self.queue
        by = person_of(self.request)
        require_queue_within(by.authority, name, self.act)
        pause = _pause_of(name, by)
        context: dict[str, Any] = {
            "queue": name,
            "pause": pause,
            "form": form or self.new_form(queue=name),
            "asks": (pause is None) == (self.act is Act.PAUSE),
        }
        if context["asks"] and self.act is Act.PAUSE:
            with bounded():
                workers = run(read.workers(authority=by.authority))
                context["radius"] = serving.radius(name, seen_by(by), workers)
        return self.answer(context, said)


class Pausing(QueueActing):
    """`POST /queues/pauses/`."""

    act = Act.PAUSE

    def perform(self, form: ReasonForm) -> Acted:
        """Pause it."""
        return acts.pause(by=person_of(self.request), **form.wish)


class Resuming(QueueActing):
    """`POST /queues/resumptions/`."""

    act = Act.RESUME

    def perform(self, form: ReasonForm) -> Acted:
        """Resume it."""
        return acts.resume(by=person_of(self.request), **form.wish)


class Limiting(QueueActing):
    """`POST /queues/limits/`."""

    act = Act.LIMIT
    form = LimitForm

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, and the limit that there is."""
        name = self.queue
        by = person_of(self.request)
        require_queue_within(by.authority, name, self.act)
        limited = _limit_of(name, by)
        context = {
            "queue": name,
            "limited": limited,
            "settings_say": Limit.of(conf.get().queues.get(name)).word,
            "form": form or self.new_form(queue=name, limit=_choice(limited)),
            "asks": True,
        }
        return self.answer(context, said)

    def perform(self, form: ReasonForm) -> Acted:
        """Limit it."""
        return acts.limit(by=person_of(self.request), **form.wish)


class Cancelling(Sweeping):
    """`POST /queues/cancellations/?queue=NAME`: all that waited when it was previewed, in batches."""

    act = Act.CANCEL
    form = PreviewForm
    here = "queues"
    template = "emptying"

    @property
    def queue(self) -> str:
        """The queue that the address names. Raises BadFilter."""
        return filters.queue_of(self.request.GET)

    def leads_to(self) -> str:
        """The list of queues."""
        return addresses.of(self.request, "queues")

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """How many jobs that is, by state, and the form where there are any."""
        by = person_of(self.request)
        require_queue_within(by.authority, self.queue, self.act)
        with bounded():
            seen = seen_by(by)
            newest = run(waiting.newest(authority=by.authority))
        line = _line(self.queue, seen, [])
        context: dict[str, Any] = {
            "queue": self.queue,
            "tallies": [tally for tally in line.tallies if tally.state in WAITING],
            "expected": _waiting(line),
            "newest": newest,
            "counted_seconds": seen.age_seconds,
            "form": form or self.new_form(),
            "asks": _waiting(line) > 0,
        }
        return self.answer(context, said)

    def sweep(self, form: ReasonForm) -> Sweep:
        """Cancel what waits in it."""
        which = Matching(states=WAITING, queue=self.queue)
        return acts.cancellation(which, by=person_of(self.request), reason=form.cleaned_data["reason"])

    def about(self) -> int:
        """As many as were previewed."""
        expected = self.request.POST.get("expected", "")
        return int(expected) if expected.isascii() and expected.isdigit() and len(expected) < 19 else 0

    def begun(self, form: ReasonForm) -> Swept:
        """Below the newest job of the preview: what has come since is left alone. Raises InvalidJob without it."""
        newest = form.cleaned_data["newest"]
        if newest is None or form.cleaned_data["expected"] is None:
            raise InvalidJob(_("Look first at what it would end: send the form as it is shown."))
        return replace(super().begun(form), cursor=newest + 1)


def _choice(limited: Limited | None) -> str:
    """A number is the likeliest wish, but for a sequential queue."""
    return LimitWord.SEQUENTIAL.value if limited and limited.limit.sequential else NUMBER


def _limit_of(name: str, by: Person) -> Limited | None:
    with bounded():
        found = run(queues.limits(authority=by.authority))
    return next((limited for limited in found if limited.queue == name), None)


def _pause_of(name: str, by: Person) -> Pause | None:
    with bounded():
        found = run(queues.pauses(authority=by.authority))
    return next((pause for pause in found if pause.queue == name), None)
