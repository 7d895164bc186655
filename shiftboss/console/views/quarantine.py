"""The quarantine by its reasons, and acts on all jobs of a reason."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from shiftboss import acts
from shiftboss.acts import Sweep
from shiftboss.console import addresses, choosing, held, live, offers
from shiftboss.console.forms import ReasonForm
from shiftboss.console.narrowing import seen_by
from shiftboss.console.offers import JobAct
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Said
from shiftboss.console.views.sweeping import Sweeping
from shiftboss.permissions import Act
from shiftboss.queue.store import many
from shiftboss.queue.store.many import Held, HeldCount
from shiftboss.queue.store.samples import Part
from shiftboss.queue.store.statement import run

ACTS = tuple(one for one in offers.ACTS if one.act in (Act.REINSTATE, Act.DISCARD))
TASKS = 10
"""Tasks that a preview names."""


def index(request: HttpRequest) -> HttpResponse:
    """Quarantined jobs by reason, task and error: how many, since when, an example, and acts on all of them."""
    person = person_of(request)
    with bounded():
        seen = seen_by(person)
        groups = run(many.held_groups(authority=person.authority))
    context = {
        "reasons": held.reasons(seen, groups),
        "looked": many.LOOKED if seen.within is None else many.BUDGET,
        "whole": seen,
        "age_seconds": seen.ages.get(Part.QUARANTINE),
        "acts": [one for one in ACTS if person.may(one.act)],
    }
    return live.answer(request, "quarantine", context)


class HeldActing(Sweeping):
    """One act on all jobs of a reason, `POST /quarantine/discards/?reason=poison`, or of one kind of them."""

    here = "quarantine"
    template = "held"
    of: JobAct

    @property
    def which(self) -> Held:
        """The jobs that the address means. Raises BadFilter."""
        return held.read(self.request.GET)

    def sweep(self, form: ReasonForm) -> Sweep:
        """Do it."""
        return acts.sweep(self.act, self.which, by=person_of(self.request), reason=form.cleaned_data["reason"])

    def about(self) -> int:
        """As many as were counted; of a whole reason as many as were last seen of it, if those are more."""
        return self._about(self._counted().jobs)

    def _counted(self) -> HeldCount:
        return run(many.held_count(self.which, authority=person_of(self.request).authority))

    def _about(self, counted: int) -> int:
        if self.which.task is not None:
            return counted
        return max(
            counted,
            sum(
                one.jobs for one in seen_by(person_of(self.request)).quarantine if one.reason == self.which.reason
            ),
        )

    def leads_to(self) -> str:
        """The quarantine."""
        return addresses.of(self.request, "quarantine")

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """Which jobs would change, counted now, and the form where there are any."""
        which = self.which
        with bounded():
            count = self._counted()
            about = self._about(count.jobs) if count.capped else count.jobs
        context: dict[str, Any] = {
            "form": form or self.new_form(),
            "which": which,
            "headline": held.HEADLINES[which.reason],
            "count": count,
            "about": about,
            "tasks": count.tasks[:TASKS],
            "more_tasks": len(count.tasks) - TASKS,
            "question": choosing.question(self.act, count.jobs),
            "undoing": choosing.undoing(self.act),
            "reinstates": self.act is Act.REINSTATE,
            "asks": count.jobs > 0,
        }
        return self.answer(context, said if count.jobs or self.request.method != "POST" else Said(status=409))


def view_of(one: JobAct) -> View:
    """The view of one act."""

    class OfOneAct(HeldActing):
        act, of = one.act, one

    return OfOneAct.as_view()
