"""Acts on one job."""

from datetime import UTC
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.console import addresses, differing, filters, live, offers, pretty, revealing
from shiftboss.console.forms import EditForm, ReasonForm
from shiftboss.console.offers import JobAct
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Acting, Said
from shiftboss.console.views.job import read_job
from shiftboss.permissions import Act
from shiftboss.queue.states import State
from shiftboss.queue.store.read import JobDetail


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
            job = read_job(self.job_id, by=person_of(self.request))
        legal = self.is_legal(job.state)
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
        context |= self.more(job, form)
        if not legal:
            said = Said(status=409)
        return self.answer(context, said)

    def is_legal(self, state: State) -> bool:
        """Whether it may be done to a job in this state."""
        return self.act in acts.legal(state)

    def more(self, job: JobDetail, form: ReasonForm | None) -> dict[str, Any]:
        """What else this act's form shows."""
        return {}


class Revealing(JobActing):
    """`POST /jobs/7/reveals/`: an act that only lets somebody look."""

    def is_legal(self, state: State) -> bool:
        """To look is always legal."""
        return True

    def perform(self, form: ReasonForm) -> Acted:
        """Keep it in the audit, and remember it for this login."""
        acted = super().perform(form)
        revealing.remember(self.request, self.job_id)
        return acted

    def leads_to(self) -> str:
        """The job, or the form that needs its arguments."""
        if self.request.GET.get("then") == "edits":
            return addresses.of(self.request, "edits", job_id=self.job_id)
        return super().leads_to()


class RevealingInLists(Acting):
    """`POST /jobs/reveals/`, with the query of the list that it leads back to."""

    act = Act.REVEAL
    form = ReasonForm
    here = "jobs"

    def perform(self, form: ReasonForm) -> Acted:
        """Keep it in the audit, and remember it for this login."""
        acted = acts.reveal_in_lists(by=person_of(self.request), **form.wish)
        revealing.remember(self.request, revealing.LISTS)
        return acted

    def leads_to(self) -> str:
        """The list from which one came."""
        return addresses.of(self.request, "jobs") + filters.read(self.request.GET).query

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form."""
        return self.answer({"form": form or self.new_form(), "asks": True, "in_lists": True}, said)


class Editing(JobActing):
    """`POST /jobs/7/edits/`: what differs is shown before it is done."""

    form: type[EditForm] = EditForm

    def get(self, request: HttpRequest, **arguments: Any) -> HttpResponse:
        """The form, which shows the arguments: they have to be revealed first."""
        if not revealing.is_revealed(request, self.job_id):
            address = addresses.of(request, "reveals", job_id=self.job_id)
            return live.private(HttpResponseRedirect(f"{address}?then=edits"))
        return super().get(request, **arguments)

    def post(self, request: HttpRequest, **arguments: Any) -> HttpResponse:
        """Show what differs; do it where that was shown for these very arguments."""
        form = self.form(request.POST, needs_reason=False)
        if form.is_valid() and form.cleaned_data["confirmed"] != form.digest:
            if not revealing.is_revealed(request, self.job_id):
                return self.get(request, **arguments)
            return self.ask(form, Said())
        return super().post(request, **arguments)

    def more(self, job: JobDetail, form: ReasonForm | None) -> dict[str, Any]:
        """The arguments as they are, or as they were typed, and what differs."""
        if form is None:
            return {"form": self.new_form(args=pretty.indented(job.args))}
        if not isinstance(form, EditForm) or not form.is_valid():
            return {}
        return {"digest": form.digest, "difference": differing.lines(job.args, form.cleaned_data["args"])}


VIEWS: dict[Act, type[JobActing]] = {Act.REVEAL: Revealing, Act.EDIT: Editing}


def view_of(one: JobAct) -> View:
    """The view of one act."""
    of_its_kind = VIEWS.get(one.act, JobActing)
    kind: type[JobActing] = type("OfOneAct", (of_its_kind,), {"act": one.act, "form": one.form, "of": one})
    return kind.as_view()
