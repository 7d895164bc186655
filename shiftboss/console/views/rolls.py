"""Rolling restarts: the last ones, one with its workers as they are restarted, and the acts on them."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from shiftboss import acts
from shiftboss.acts import LARGEST_ID, Acted
from shiftboss.console import addresses, live
from shiftboss.console.forms import ReasonForm, RollForm
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.views.acting import Acting, Said
from shiftboss.permissions import Act, Person
from shiftboss.queue.errors import NoSuchRoll
from shiftboss.queue.store import hosts, rolls
from shiftboss.queue.store.rolls import RollRow
from shiftboss.queue.store.statement import run

MOST = 50
"""Rolls on one page."""


def index(request: HttpRequest) -> HttpResponse:
    """The last rolls."""
    person = person_of(request)
    with bounded():
        rows = run(rolls.rolls(authority=person.authority, limit=MOST))
        seen = seen_by(person)
    context = {
        "whole": seen,
        "rolls": rows,
        "may_roll": person.may(Act.ROLL_POOL),
    }
    return live.answer(request, "rolls", context)


def show(request: HttpRequest, roll_id: int) -> HttpResponse:
    """One roll with its workers, in their order. Raises NoSuchRoll."""
    person = person_of(request)
    with bounded():
        row = roll_of(roll_id, by=person)
        steps = run(rolls.steps(roll_id, authority=person.authority))
        seen = seen_by(person)
    context = {
        "whole": seen,
        "roll": row,
        "steps": steps,
        "in_hand": rolls.IN_HAND,
        "may_cancel": row.state == "running" and person.may(Act.CANCEL_ROLL),
    }
    return live.answer(request, "roll", context)


def roll_of(roll_id: int, *, by: Person) -> RollRow:
    """The roll of this number. Raises NoSuchRoll."""
    row = run(rolls.roll(roll_id, authority=by.authority)) if 0 < roll_id <= LARGEST_ID else None
    if row is None:
        raise NoSuchRoll(f"there is no rolling restart {roll_id}, or it was forgotten 30 days after its end")
    return row


class Beginning(Acting):
    """`POST /rolls/beginnings/`, and on to the roll."""

    act = Act.ROLL_POOL
    form = RollForm
    here = "rolls"
    template = "roll_act"
    begun: int | None = None

    def perform(self, form: ReasonForm) -> Acted:
        """Begin it. Raises RollRefused, NoSuchProgram, HostSilent."""
        acted = acts.roll_pool(by=person_of(self.request), **form.wish)
        self.begun = acted.roll_id
        return acted

    def leads_to(self) -> str:
        """The roll that has begun, else where one comes from."""
        if self.begun is not None:
            return addresses.of(self.request, "roll", roll_id=self.begun)
        return addresses.of(self.request, "rolls")

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, with the pools and the workers that there are; and whether one runs already."""
        person = person_of(self.request)
        with bounded():
            known = run(hosts.hosts(authority=person.authority))
            rows = run(rolls.rolls(authority=person.authority, limit=1))
        up = [one for row in known if row.alive for one in row.programs if one["pool"] and one["launcher"]]
        running = next((row for row in rows if row.state == "running"), None)
        context: dict[str, Any] = {
            "form": form or self.new_form(pool=self.request.GET.get("pool", "")),
            "pools": sorted({str(one["pool"]) for one in up}),
            "workers": len(up),
            "running": running,
            "asks": True,
        }
        return self.answer(context, said)


class Cancelling(Acting):
    """`POST /rolls/7/cancellations/`."""

    act = Act.CANCEL_ROLL
    form = ReasonForm
    here = "roll"
    template = "roll_act"

    @property
    def roll_id(self) -> int:
        """The roll that the address names."""
        return int(self.kwargs["roll_id"])

    def perform(self, form: ReasonForm) -> Acted:
        """Cancel it. Raises NoSuchRoll, RollRefused."""
        return acts.cancel_roll(self.roll_id, by=person_of(self.request), **form.wish)

    def leads_to(self) -> str:
        """The roll."""
        return addresses.of(self.request, "roll", roll_id=self.roll_id)

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, with how far it is; or that it has ended. Raises NoSuchRoll."""
        with bounded():
            row = roll_of(self.roll_id, by=person_of(self.request))
        asks = row.state == "running"
        context: dict[str, Any] = {"form": form or self.new_form(), "roll": row, "asks": asks}
        return self.answer(context, said if asks else Said(status=409))
