"""Bulk acts as pages: a preview, and then batches, some seconds of them with each answer, until all is done.

Between two answers the page holds how far the act is, signed; nothing of it is in this process. Without JavaScript
each "Go on" is pressed.
"""

from abc import abstractmethod
from dataclasses import replace
from time import monotonic
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from django.core import signing
from django.http import HttpResponse
from django.shortcuts import render

from shiftboss.acts import Sweep, Swept
from shiftboss.console import frame, live, results
from shiftboss.console.csrf import StaleForm
from shiftboss.console.forms import ReasonForm
from shiftboss.console.people import person_of
from shiftboss.console.views.acting import Acting
from shiftboss.queue.errors import Busy
from shiftboss.queue.store import many
from shiftboss.queue.store.many import Operation
from shiftboss.queue.store.statement import run

STEP_SECONDS = 2.0
"""After so long an answer tells how far the act is."""

SALT = "shiftboss.sweep"
LONGEST_SECONDS = 3600


class Sweeping(Acting):
    """A bulk act. Subclasses know what is meant by it."""

    form = ReasonForm

    @abstractmethod
    def sweep(self, form: ReasonForm) -> Sweep:
        """The act that the form means."""

    @abstractmethod
    def about(self) -> int:
        """How many jobs there are about, for telling how far it is."""

    def perform(self, form: ReasonForm) -> tuple[Sweep, Swept, int]:
        """Some batches of it, and how many jobs it is about in all."""
        sweep = self.sweep(form)
        so_far, about = self._so_far() or (self.begun(form), 0)
        about = about or self.about()
        until = monotonic() + STEP_SECONDS
        while not so_far.done:
            try:
                so_far = sweep.go_on(so_far)
            except Busy:
                break  # the page goes on from here
            if monotonic() >= until:
                break
        return sweep, so_far, about

    def told(self, acted: Any, form: ReasonForm) -> HttpResponse:
        """The end of it, on the page from which one came; or how far it is, with a form that goes on."""
        sweep, swept, about = acted
        if swept.done:
            if swept.changed or not (earlier := self._kept(swept.operation)):
                results.keep_swept(self.request, sweep.act, swept)
            else:
                results.keep_repeated(self.request, sweep.act, swept.operation, earlier.jobs)
            return self.led_on()
        past = swept.changed + swept.left + len(swept.busy)
        context = {
            "act": self.act,
            "address": self.request.get_full_path(),
            "back": self.leads_to(),
            "form": form,
            "swept": swept,
            "about": max(about, past),
            "past": past,
            "so_far": self._signed(swept, about),
        }
        context |= frame.around(self.request, self.here)
        return live.private(render(self.request, "shiftboss/sweeping.html", context))

    def begun(self, form: ReasonForm) -> Swept:
        """The beginning. The same form sent twice is the same operation."""
        request_id, by = form.wish["request_id"], person_of(self.request)
        if request_id is None:
            return Swept()
        operation = uuid5(NAMESPACE_OID, f"{by.kind}/{by.id}/{request_id}/{self.request.get_full_path()}")
        return Swept(operation=operation, done=self._kept(operation) is not None)

    def _kept(self, operation: UUID) -> Operation | None:
        """What the audit keeps of an operation of this person's."""
        by = person_of(self.request)
        return run(many.operation(operation, authority=by.authority, reader=by.as_actor))

    @property
    def _meant(self) -> str:
        by = person_of(self.request)
        return f"{by.kind}/{by.id}/{self.act}/{self.request.get_full_path()}"

    def _signed(self, swept: Swept, about: int) -> str:
        facts = [self._meant, str(swept.operation), about, swept.ended, swept.requested, swept.left, swept.cursor]
        rest = [swept.walked, swept.busy, swept.again, swept.passes]
        return signing.dumps([*facts, *rest], salt=SALT, compress=True)

    def _so_far(self) -> tuple[Swept, int] | None:
        """How far the act is that the form goes on with. Raises StaleForm for what is not to be believed."""
        text = self.request.POST.get("so_far")
        if not text:
            return None
        try:
            meant, operation, about, ended, requested, left, cursor, walked, busy, again, passes = signing.loads(
                text, salt=SALT, max_age=LONGEST_SECONDS
            )
        except signing.BadSignature:
            raise StaleForm("the form of a bulk act is too old, or another's") from None
        if meant != self._meant:
            raise StaleForm("the form of a bulk act is another's")
        swept = Swept(operation=UUID(operation), ended=ended, requested=requested, left=left, cursor=cursor)
        return replace(swept, walked=walked, busy=tuple(busy), again=tuple(again), passes=passes), about
