"""What people ask of programs and pools of a host: its agent does it, and a command tells what became of it."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.console import addresses, filters, live, logs, news, program_acts, text
from shiftboss.console import commands as sentences
from shiftboss.console.asking import Asking
from shiftboss.console.forms import ReasonForm, ScaleForm
from shiftboss.console.hosts import Seat, Standing
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.signature import View
from shiftboss.console.views.acting import Acting, Said
from shiftboss.console.views.hosts import RUNS, command_of, host_of, standings
from shiftboss.console.whole import Whole
from shiftboss.permissions import Act
from shiftboss.queue.errors import Busy, NoSuchCommand, NoSuchProgram
from shiftboss.queue.store.commands import FOLLOW_SECONDS, CommandRow


class OnHost(Acting):
    """An act on something of a host, which the address names."""

    here = "program"
    form = ReasonForm

    @property
    def host(self) -> str:
        """The host that is meant."""
        return str(self.kwargs["host"])

    def told(self, acted: Acted, form: ReasonForm) -> HttpResponse:
        """The next page says what was asked of whom, and leads to what becomes of it."""
        thing = self.kwargs.get("program") or self.kwargs.get("pool")
        facts = {"host": text.visible(self.host), "thing": text.visible(str(thing)), **form.facts()}
        news.keep(self.request, acted, facts=facts)
        return self.led_on()

    def standing(self) -> Standing:
        """The host as it stands. Raises NoSuchProgram."""
        person = person_of(self.request)
        with bounded():
            row = host_of(self.host, by=person)
            [found], _ = standings([row], by=person, per_worker=RUNS, only=self.kwargs.get("program"))
        return found


class ProgramActing(OnHost):
    """One act on a program, `POST /hosts/web-1/worker-default-1/restarts/`."""

    of: Asking

    @property
    def program(self) -> str:
        """The program that is meant."""
        return str(self.kwargs["program"])

    def perform(self, form: ReasonForm) -> Any:
        """Ask it of the host. Raises NoSuchProgram, HostSilent."""
        return self.of.perform(self.host, self.program, by=person_of(self.request), **form.wish)

    def leads_to(self) -> str:
        """The program."""
        return addresses.of(self.request, "program", host=self.host, program=self.program)

    def seat(self, standing: Standing) -> Seat:
        """The program as it stands. Raises NoSuchProgram."""
        found = [seat for seat in standing.seats if seat.name == self.program]
        if not found:
            raise NoSuchProgram(f"the host {self.host!r} has no program {self.program!r}")
        return found[0]

    def makes_sense(self, seat: Seat, standing: Standing) -> bool:
        """Whether it can be asked of the program as it stands."""
        return self.of in program_acts.offered(seat, standing.row, to=person_of(self.request))

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, with what the program has in hand; or that it makes no sense now. Raises NoSuchProgram."""
        standing = self.standing()
        seat = self.seat(standing)
        possible = self.makes_sense(seat, standing)
        names = {"program": text.visible(self.program), "host": text.visible(self.host)}
        context: dict[str, Any] = {
            "seat": seat,
            "standing": standing,
            "form": form or self.new_form(),
            "question": self.of.question % names,
            "effect": self.of.effect,
            "asks": possible,
        }
        return self.answer(context, said if possible else Said(status=409))


def view_of(one: Asking) -> View:
    """The view of one act."""

    class OfOneAct(ProgramActing):
        act, of = one.act, one

    return OfOneAct.as_view()


class Scaling(OnHost):
    """`POST /hosts/web-1/pools/default/scales/`."""

    act = Act.SCALE_POOL
    form = ScaleForm
    here = "hosts"

    @property
    def pool(self) -> str:
        """The pool that is meant."""
        return str(self.kwargs["pool"])

    def perform(self, form: ReasonForm) -> Acted:
        """Ask it of the host. Raises NoSuchProgram, HostSilent."""
        return acts.scale_pool(self.host, self.pool, by=person_of(self.request), **form.wish)

    def leads_to(self) -> str:
        """The hosts."""
        return addresses.of(self.request, "hosts")

    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, with how many workers there are and may be. Raises NoSuchProgram."""
        standing = self.standing()
        share = next((one for one in standing.shares if one.pool == self.pool), None)
        if share is None:
            raise NoSuchProgram(f"the host {self.host!r} has no pool {self.pool!r}")
        context: dict[str, Any] = {
            "share": share,
            "standing": standing,
            "form": form or self.new_form(count=share.up),
            "asks": standing.row.alive,
        }
        return self.answer(context, said if standing.row.alive else Said(status=409))


class Log(ProgramActing):
    """`/hosts/web-1/web/log/`: a `POST` asks for the log, `?command=7` shows what was answered.

    Who sends the form with the number of a command looks again: for a while by that same command.
    """

    act = Act.TAIL_PROGRAM
    of = Asking(
        act=Act.TAIL_PROGRAM,
        resource="log",
        question=_("Show the log of %(program)s on %(host)s?"),
        effect=_("Its last lines, as the agent of the host reads them now. The audit keeps that you looked."),
        perform=acts.tail_program,
    )

    def get(self, request: HttpRequest, **arguments: Any) -> HttpResponse:
        """What was answered, or the form; also where somebody else has asked: each look is in the audit.

        Raises BadFilter, NoSuchCommand.
        """
        command_id, person = filters.id_of(request.GET, "command"), person_of(request)
        if command_id is None:
            return super().get(request, **arguments)
        with bounded():
            row = command_of(command_id, by=person)
            seen = seen_by(person)
        if (row.verb, row.host, row.program) != ("tail", self.host, self.program):
            raise NoSuchCommand(f"command {command_id} did not ask for this log")
        if row.asked_by != person.name:
            return super().get(request, **arguments)
        return self.show(row, seen)

    def show(self, row: CommandRow, seen: Whole) -> HttpResponse:
        """The lines that the agent has answered with, narrowed to those with a text in them."""
        sought = self.request.GET.get("q", "")[: logs.MAX_SOUGHT]
        context: dict[str, Any] = {
            "whole": seen,
            "host": self.host,
            "program": self.program,
            "command": row,
            "is_under_way": row.state in sentences.UNDER_WAY,
            "is_wrong": row.state in sentences.WRONG,
            "shown": logs.shown((row.result or {}).get("lines"), sought),
            "sought": sought,
            "new_form": self.new_form(),
            "follow_seconds": FOLLOW_SECONDS,
        }
        return live.answer(self.request, "log", context)

    def makes_sense(self, seat: Seat, standing: Standing) -> bool:
        """A log is there whatever its program does, as long as somebody can read it."""
        return standing.row.alive

    def perform(self, form: ReasonForm) -> Acted | int:
        """Ask for it, or look again. Raises NoSuchProgram, HostSilent, BadFilter, Busy."""
        command_id, person = filters.id_of(self.request.POST, "command"), person_of(self.request)
        if command_id is not None and self._looks_again(command_id):
            return command_id
        if live.is_refresh(self.request):
            raise Busy("a log is followed for a while; to go on is to ask anew, which the audit keeps")
        return acts.tail_program(self.host, self.program, by=person, **form.wish)

    def _looks_again(self, command_id: int) -> bool:
        person = person_of(self.request)
        if acts.tail_again(command_id, by=person):
            return True
        with bounded():
            row = command_of(command_id, by=person)
        return row.asked_by == person.name and row.state in sentences.UNDER_WAY

    def told(self, acted: Acted | int, form: ReasonForm) -> HttpResponse:
        """To the answer. A script that follows the log is only told that it is asked for again."""
        if isinstance(acted, int) and live.is_refresh(self.request):
            return live.private(HttpResponse(status=204))
        number = acted if isinstance(acted, int) else acted.command_id
        address = addresses.of(self.request, "log", host=self.host, program=self.program)
        return live.private(HttpResponse(status=303, headers={"Location": f"{address}?command={number}"}))
