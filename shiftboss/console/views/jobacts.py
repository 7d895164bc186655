"""Acts on one job."""

from datetime import UTC
from typing import Any

from django.http import HttpResponse

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.console import addresses, filters, offers
from shiftboss.console.forms import ReasonForm
from shiftboss.console.offers import JobAct
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Acting, Said
from shiftboss.console.views.job import read_job


class JobActing(Acting):
    """One act on a job, `POST /jobs/7/reruns/`. With a list's filter as its query it leads back to that list."""

    here = "job"
    of: JobAct

    @property
    def job_id(self) -> int:
        """The job that the address names. Raises NoSuchJob."""
        return filters.checked_id(self.kwargs["job_id"])

    def perform(self, form: ReasonForm) -> Acted:
        """Do it. Raises NoSuchJob."""
        return self.of.perform(self.job_id, by=person_of(self.request), **form.wish)

    def leads_to(self) -> str:
        """The list from which one came, else the job."""
        if "state" in self.request.GET:
            return addresses.of(self.request, "jobs") + filters.read(self.request.GET).query
        return addresses.of(self.request, "job", job_id=self.job_id)

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form; or that the job has moved on, where it stands, and what can be done now. Raises NoSuchJob."""
        with bounded():
            job = read_job(self.job_id)
        legal = self.act in acts.legal(job.state)
        context: dict[str, Any] = {
            "job": job,
            "form": form
            or self.new_form(priority=job.priority, due_at=f"{job.due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"),
            "question": self.of.question % {"job": job.id},
            "effect": offers.effect(self.of, job.state),
            "asks": legal and said.holder is None,
            "moved_on": not legal,
            "offers": offers.on_page(job, to=person_of(self.request)),
        }
        if not legal:
            said = Said(status=409)
        return self.answer(context, said)


def view_of(one: JobAct) -> View:
    """The view of one act."""

    class OfOneAct(JobActing):
        act, form, of = one.act, one.form, one

    return OfOneAct.as_view()
