"""The workers, one of them with all that runs in it, and the orders to it."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from shiftboss import acts
from shiftboss.acts import LARGEST_ID, Acted
from shiftboss.console import addresses, live, roster
from shiftboss.console.asking import Asking
from shiftboss.console.forms import ReasonForm
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Acting, Said
from shiftboss.permissions import Act, Person
from shiftboss.queue.errors import NoSuchWorker
from shiftboss.queue.store import read
from shiftboss.queue.store.read import WorkerRow
from shiftboss.queue.store.statement import run

RUNS = 200
"""Jobs on the page of one worker."""


ORDERS = (
    Asking(
        act=Act.DRAIN_WORKER,
        resource="drains",
        question=_("Drain worker %(worker)s?"),
        effect=_(
            "It claims no more, tells its runs that it shuts down, and ends once they have, or when its time to"
            " drain is over: then what is left is given back. This cannot be taken back."
        ),
        perform=acts.drain_worker,
    ),
    Asking(
        act=Act.STOP_WORKER,
        resource="stops",
        question=_("Stop worker %(worker)s?"),
        effect=_(
            "It ends now: what it runs is cut off and given back, with no attempt lost. Each of these jobs begins"
            " again elsewhere. This cannot be taken back."
        ),
        perform=acts.stop_worker,
    ),
)


def index(request: HttpRequest) -> HttpResponse:
    """A page of the workers with what runs in each, and those that ended within the last hour."""
    wanted, person = roster.read(request.GET), person_of(request)
    with bounded():
        workers = run(read.workers(authority=person.authority))
        shown = roster.arrange(workers, wanted)
        ids = [worker.id for worker in shown.page]
        runs = run(read.running(ids, authority=person.authority, per_worker=roster.RUNS_SHOWN)) if ids else []
        seen = seen_by(person)
    context = {
        "whole": seen,
        "roster": shown,
        "filter": shown.wanted,
        "states": roster.STATES,
        "lines": roster.lines(shown.page, runs),
        "previous": shown.wanted.on_page(shown.wanted.page - 1).query if shown.wanted.page > 1 else None,
        "next": shown.wanted.on_page(shown.wanted.page + 1).query if shown.wanted.page < shown.pages else None,
        "first": (shown.wanted.page - 1) * roster.PAGE + 1,
    }
    return live.answer(request, "workers", context)


def show(request: HttpRequest, worker_id: int) -> HttpResponse:
    """One worker with all that runs in it. Raises NoSuchWorker."""
    person = person_of(request)
    with bounded():
        worker = read_worker(worker_id, by=person)
        runs = run(read.running([worker_id], authority=person.authority, per_worker=RUNS))
        seen = seen_by(person)
    [line] = roster.lines([worker], runs)
    given = roster.orders(worker, to=person)
    context = {
        "whole": seen,
        "line": line,
        "worker": worker,
        "offers": [one for one in ORDERS if one.act in given],
    }
    return live.answer(request, "worker", context)


def read_worker(worker_id: int, *, by: Person) -> WorkerRow:
    """What the record says of a worker to this person. Raises NoSuchWorker."""
    worker = run(read.worker(worker_id, authority=by.authority)) if 0 < worker_id <= LARGEST_ID else None
    if worker is None:
        raise NoSuchWorker(f"there is no worker {worker_id}")
    return worker


class WorkerActing(Acting):
    """One order to a worker, `POST /workers/7/drains/`."""

    here = "worker"
    form = ReasonForm
    of: Asking

    @property
    def worker_id(self) -> int:
        """The worker that the address names."""
        return int(self.kwargs["worker_id"])

    def perform(self, form: ReasonForm) -> Acted:
        """Give the order. Raises NoSuchWorker, OrderRefused."""
        return self.of.perform(self.worker_id, by=person_of(self.request), **form.wish)

    def leads_to(self) -> str:
        """The worker."""
        return addresses.of(self.request, "worker", worker_id=self.worker_id)

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, with what the order would stop; or that it cannot be given any more. Raises NoSuchWorker."""
        person = person_of(self.request)
        with bounded():
            worker = read_worker(self.worker_id, by=person)
            workers = run(read.workers(authority=person.authority))
        possible = self.act in roster.orders(worker, to=person)
        context: dict[str, Any] = {
            "worker": worker,
            "standing": roster.standing(worker),
            "form": form or self.new_form(),
            "question": self.of.question % {"worker": worker.id},
            "effect": self.of.effect,
            "left_alone": roster.left_alone(worker, workers),
            "asks": possible,
        }
        return self.answer(context, said if possible else Said(status=409))


def view_of(one: Asking) -> View:
    """The view of one order."""

    class OfOneOrder(WorkerActing):
        act, of = one.act, one

    return OfOneOrder.as_view()
