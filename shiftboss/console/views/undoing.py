"""Undoing an operation, as far as it can be, within some minutes."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from shiftboss import acts
from shiftboss.acts import UNDO_SECONDS, UNDOES, Sweep
from shiftboss.console import addresses, choosing
from shiftboss.console.forms import ReasonForm
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.views.acting import Said
from shiftboss.console.views.sweeping import Sweeping
from shiftboss.permissions import VIEW_AUDIT, Act
from shiftboss.queue.errors import CannotUndo, InvalidJob, NoSuchOperation
from shiftboss.queue.store import many
from shiftboss.queue.store.many import Operation
from shiftboss.queue.store.statement import run


@method_decorator(csrf_exempt, name="dispatch")  # as Acting's, which this one stands before
class Undoing(Sweeping):
    """`POST /operations/…/undoings/`. It asks the permission of the act that undoes."""

    here = "audit"
    template = "undo"
    act = Act.QUARANTINE
    operation: Operation

    def dispatch(self, request: HttpRequest, *args: Any, **arguments: Any) -> HttpResponseBase:
        """Look at the operation first: it says which act undoes it. Raises NoSuchOperation, Lacking."""
        with bounded():
            by = person_of(request)
            found = run(many.operation(arguments["operation"], authority=by.authority, reader=by.as_actor))
        if found is None:
            raise NoSuchOperation(f"there is no operation {arguments['operation']}")
        self.operation = found
        self.act = UNDOES.get(Act(found.act), Act.QUARANTINE)
        return super().dispatch(request, *args, **arguments)

    @property
    def can_be_undone(self) -> bool:
        """Whether it is such an act, and not too old."""
        return Act(self.operation.act) in UNDOES and self.operation.age_seconds <= UNDO_SECONDS

    def sweep(self, form: ReasonForm) -> Sweep:
        """Undo it. Raises InvalidJob where that cannot be, or no longer."""
        try:
            return acts.undo(
                self.kwargs["operation"], by=person_of(self.request), reason=form.cleaned_data["reason"]
            )
        except CannotUndo as problem:
            raise InvalidJob(str(problem)) from None

    def about(self) -> int:
        """As many as the operation has changed."""
        return self.operation.jobs

    def leads_to(self) -> str:
        """The audit where one may see it, else the jobs that were meant."""
        if person_of(self.request).allows(VIEW_AUDIT):
            return addresses.of(self.request, "audit")
        return addresses.of(self.request, "jobs")

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """What would be undone; or that it cannot be, and what to do instead."""
        context: dict[str, Any] = {
            "operation": self.operation,
            "done": choosing.done(Act(self.operation.act), self.operation.jobs),
            "reinstates": self.act is Act.REINSTATE,
            "form": form or self.new_form(reason=_("done by mistake")),
            "asks": self.can_be_undone,
        }
        if not self.can_be_undone:
            said = Said(status=409)
        return self.answer(context, said)
