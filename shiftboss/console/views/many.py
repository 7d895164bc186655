"""Acts on jobs that somebody has chosen in a list."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from shiftboss import acts
from shiftboss.acts import Many
from shiftboss.console import addresses, choosing, filters, offers, results
from shiftboss.console.filters import BadFilter
from shiftboss.console.forms import ReasonForm
from shiftboss.console.offers import JobAct
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Acting, Said
from shiftboss.queue.store import many
from shiftboss.queue.store.statement import run

ACTS = tuple(one for act in acts.ON_MANY for one in offers.ACTS if one.act is act)
"""The acts on many jobs, in the order of their buttons."""


class ManyActing(Acting):
    """One act on chosen jobs, `POST /jobs/many/reruns/?job=7&job=8`, with the list's filter in the same query."""

    here = "jobs"
    form = ReasonForm
    template = "many"
    of: JobAct

    @property
    def job_ids(self) -> list[int]:
        """The jobs that the address names. Raises BadFilter."""
        ids = sorted({_id(text) for text in self.request.GET.getlist("job")})
        if len(ids) > acts.MOST:
            raise BadFilter(f"choose at most {acts.MOST} jobs")
        return ids

    def perform(self, form: ReasonForm) -> Many:
        """Do it."""
        return acts.on_many(self.act, self.job_ids, by=person_of(self.request), **form.wish)

    def told(self, acted: Many, form: ReasonForm) -> HttpResponse:
        """Back to the list, which says what was done."""
        results.keep_many(self.request, acted)
        return self.led_on()

    def leads_to(self) -> str:
        """The list from which one came."""
        return addresses.of(self.request, "jobs") + filters.read(self.request.GET).query

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """What would happen to each of them, and the form where anything would."""
        with bounded():
            standings = run(many.named(self.job_ids, authority=person_of(self.request).authority))
        foreseen = choosing.foresee(self.act, standings)
        context: dict[str, Any] = {
            "form": form or self.new_form(),
            "foreseen": foreseen,
            "question": choosing.question(self.act, foreseen.changing),
            "undoing": choosing.undoing(self.act),
            "asks": foreseen.changing > 0,
        }
        if not foreseen.jobs:
            context["question"] = _("No job is selected")
        elif not foreseen.changing:
            context["question"] = _("None of the selected jobs can be changed so")
        return self.answer(
            context, said if foreseen.changing or self.request.method != "POST" else Said(status=409)
        )


def view_of(one: JobAct) -> View:
    """The view of one act."""

    class OfOneAct(ManyActing):
        act, of = one.act, one

    return OfOneAct.as_view()


def _id(text: str) -> int:
    job_id = filters.id_of({"job": text}, "job")
    if not job_id:
        raise BadFilter("a job must be named by its id")
    return job_id


def offered(request: HttpRequest, states: Any) -> list[JobAct]:
    """The acts on many that fit a list of jobs in these states, and that this person may do."""
    fitting, person = choosing.offered(states), person_of(request)
    return [one for one in ACTS if one.act in fitting and person.may(one.act)]
