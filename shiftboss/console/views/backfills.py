"""Backfills: the list, one of them with how far it is, and the acts on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.console import addresses, figures, filters, live, words
from shiftboss.console.asking import Asking
from shiftboss.console.forms import ReasonForm
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Acting, Said
from shiftboss.permissions import PERMISSIONS, Act, Person
from shiftboss.queue.errors import NoSuchBackfill
from shiftboss.queue.store import backfill as store
from shiftboss.queue.store.backfill import PAGE, BackfillRow, Standing
from shiftboss.queue.store.statement import run


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillAct(Asking):
    """An act on a backfill, and when it makes sense."""

    sensible: Callable[[BackfillRow], bool]


ACTS = (
    BackfillAct(
        act=Act.RESUME_BACKFILL,
        resource="resumptions",
        question=_("Resume backfill %(name)s?"),
        effect=_("Its items are enqueued again."),
        perform=acts.resume_backfill,
        sensible=lambda row: row.paused_at is not None,
    ),
    BackfillAct(
        act=Act.RETRY_BACKFILL,
        resource="retries",
        question=_("Retry what failed of backfill %(name)s?"),
        effect=_(
            "Quarantined jobs are reinstated; cancelled and discarded items get new jobs. What is done stays."
        ),
        perform=acts.retry_backfill,
        sensible=lambda row: row.failed > 0,
    ),
    BackfillAct(
        act=Act.PAUSE_BACKFILL,
        resource="pauses",
        question=_("Pause backfill %(name)s?"),
        effect=_("No more of its items are enqueued until somebody resumes it. Jobs that it has go on."),
        perform=acts.pause_backfill,
        sensible=lambda row: row.state is Standing.RUNNING and row.paused_at is None,
    ),
    BackfillAct(
        act=Act.CANCEL_BACKFILL,
        resource="cancellations",
        question=_("Cancel backfill %(name)s?"),
        effect=_("Items that wait get no job, its jobs are cancelled, and running ones are asked to end."),
        perform=acts.cancel_backfill,
        sensible=lambda row: row.waiting + row.live + row.quarantined > 0,
    ),
)


def index(request: HttpRequest) -> HttpResponse:
    """Backfills with how far they are, the newest first."""
    before = filters.id_of(request.GET, "before")
    with bounded():
        rows = run(store.backfills(authority=person_of(request).authority, before_id=before, limit=PAGE + 1))
    page = rows[:PAGE]
    context = {
        "backfills": [(row, figures.parts(row), figures.failed(row)) for row in page],
        "before": before,
        "older": page[-1].id if len(rows) > len(page) else None,
    }
    return live.answer(request, "backfills", context)


def show(request: HttpRequest, backfill_id: int) -> HttpResponse:
    """One backfill. Raises NoSuchBackfill."""
    row = read_backfill(backfill_id, by=person_of(request))
    context = {"backfill": row, "parts": figures.parts(row), "offers": offered(row, to=person_of(request))}
    return live.answer(request, "backfill", context)


def read_backfill(backfill_id: int, *, by: Person) -> BackfillRow:
    """What the record says of a backfill to this person. Raises NoSuchBackfill."""
    row = None
    if 0 < backfill_id <= filters.LARGEST_ID:
        with bounded():
            row = run(store.backfill(backfill_id, authority=by.authority))
    if row is None:
        raise NoSuchBackfill(f"there is no backfill {backfill_id}")
    return row


def offered(row: BackfillRow, *, to: Person) -> list[BackfillAct]:
    """The acts that the page of this backfill offers to this person."""
    return [one for one in ACTS if one.sensible(row) and to.allows(PERMISSIONS[one.act])]


class BackfillActing(Acting):
    """One act on a backfill, `POST /backfills/7/pauses/`."""

    here = "backfill"
    form = ReasonForm
    of: BackfillAct

    @property
    def backfill_id(self) -> int:
        """The backfill that the address names."""
        return int(self.kwargs["backfill_id"])

    def perform(self, form: ReasonForm) -> Acted:
        """Do it. Raises NoSuchBackfill."""
        return self.of.perform(self.backfill_id, by=person_of(self.request), **form.wish)

    def leads_to(self) -> str:
        """The backfill."""
        return addresses.of(self.request, "backfill", backfill_id=self.backfill_id)

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form. Raises NoSuchBackfill."""
        row = read_backfill(self.backfill_id, by=person_of(self.request))
        context: dict[str, Any] = {
            "backfill": row,
            "form": form or self.new_form(),
            "question": self.of.question % {"name": row.name},
            "effect": self.of.effect,
            "idle": self.act is Act.RETRY_BACKFILL and row.paused_at is not None,
            "tally": [
                (n, words.spoken(words.OF_ITEMS, name)) for name in words.OF_ITEMS if (n := getattr(row, name))
            ],
            "asks": True,
        }
        return self.answer(context, said)


def view_of(one: BackfillAct) -> View:
    """The view of one act."""

    class OfOneAct(BackfillActing):
        act, of = one.act, one

    return OfOneAct.as_view()
