"""The queues, and pausing, resuming and limiting them."""

from django.http import HttpRequest, HttpResponse

from shiftboss import acts, conf
from shiftboss.acts import Acted, LimitWord
from shiftboss.console import addresses, figures, filters, live
from shiftboss.console.forms import NUMBER, LimitForm, QueueForm, ReasonForm
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.views.acting import Acting, Said
from shiftboss.permissions import Act
from shiftboss.queue.authority import System
from shiftboss.queue.store import queues, read
from shiftboss.queue.store.queues import Limit, Limited, Pause
from shiftboss.queue.store.statement import run


def index(request: HttpRequest) -> HttpResponse:
    """Every queue with jobs, a worker, a pause or a limit: its counts, who serves it, who paused it and why."""
    with bounded():
        counts = run(read.counts(authority=System()))
        workers = run(read.workers(authority=System()))
        pauses = run(queues.pauses(authority=System()))
        limits = run(queues.limits(authority=System()))
    person = person_of(request)
    context = {
        "queues": figures.queues(counts, [], workers, pauses, limits, minutes=0),
        "may_pause": person.may(Act.PAUSE),
        "may_resume": person.may(Act.RESUME),
        "may_limit": person.may(Act.LIMIT),
        "cap": read.FINISHED_CAP,
    }
    return live.answer(request, "queues", context)


class QueueActing(Acting):
    """One act on a queue, which its form names."""

    here = "queues"
    form = QueueForm

    def leads_to(self) -> str:
        """The list of queues."""
        return addresses.of(self.request, "queues")

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form. Raises BadFilter where no queue can have the name."""
        name = filters.queue_of(self.request.POST if self.request.method == "POST" else self.request.GET)
        pause = _pause_of(name)
        context = {
            "queue": name,
            "pause": pause,
            "form": form or self.new_form(queue=name),
            "asks": (pause is None) == (self.act is Act.PAUSE),
        }
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
        name = filters.queue_of(self.request.POST if self.request.method == "POST" else self.request.GET)
        limited = _limit_of(name)
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


def _choice(limited: Limited | None) -> str:
    """A number is the likeliest wish, but for a sequential queue."""
    return LimitWord.SEQUENTIAL.value if limited and limited.limit.sequential else NUMBER


def _limit_of(name: str) -> Limited | None:
    with bounded():
        found = run(queues.limits(authority=System()))
    return next((limited for limited in found if limited.queue == name), None)


def _pause_of(name: str) -> Pause | None:
    with bounded():
        found = run(queues.pauses(authority=System()))
    return next((pause for pause in found if pause.queue == name), None)
