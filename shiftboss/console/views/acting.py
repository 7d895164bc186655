"""Acts as resources: `GET` asks in a form, `POST` does it and leads on with 303. All is done by `shiftboss.acts`.

A page's script asks for the form alone and shows it above the page; without it the form is a page of its own.
Either way it is no part of what keeps itself fresh: no refresh touches what is typed, the token or the request id.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from shiftboss.console import csrf, frame, live, news
from shiftboss.console.csrf import Trouble
from shiftboss.console.forms import ReasonForm
from shiftboss.console.people import person_of
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act, Lacking, require
from shiftboss.queue.errors import (
    Busy,
    InvalidJob,
    KeyHeld,
    MovedOn,
    NotAllowed,
    OrderRefused,
    ReasonNeeded,
    RequestReused,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What there is to say beside a form: that nothing was done and why, or the job that holds a key."""

    status: int = 200
    notice: str = ""
    holder: int | None = None


@method_decorator(csrf_exempt, name="dispatch")  # `post` makes the check itself
class Acting(ABC, View):
    """One act. Subclasses know its subject, a job or a queue."""

    http_method_names = ["get", "head", "post"]

    act: Act
    form: type[ReasonForm]
    here: str
    """The page that the navigation marks."""
    template = "act"
    """The page of the form; alone it is `_act.html`."""

    def dispatch(self, request: HttpRequest, *args: Any, **arguments: Any) -> HttpResponseBase:
        """Refuse who may not do it, also where they only ask. Raises Lacking."""
        require(PERMISSIONS[self.act], by=person_of(request))
        return super().dispatch(request, *args, **arguments)

    def get(self, request: HttpRequest, **arguments: Any) -> HttpResponse:
        """Ask."""
        return self.ask(None, Said())

    def post(self, request: HttpRequest, **arguments: Any) -> HttpResponse:
        """Do it, once for each request id, and lead on; else ask again, and say why nothing was done."""
        form = self.form(request.POST, needs_reason=self.act in NEED_REASON)
        match csrf.trouble(request):
            case Trouble.STALE:
                notice = _("Nothing was done: this form is older than your login. Look at it, and send it again.")
                return self.ask(form, Said(status=403, notice=notice))
            case Trouble.FOREIGN:
                notice = _("Nothing was done: this form was not sent from an address that this site trusts.")
                return self.ask(None, Said(status=403, notice=notice))
        if not form.is_valid():
            return self.ask(form, Said(status=422))
        try:
            # Not bounded: an act waits for no lock for long, and may import the task before its transaction.
            acted = self.perform(form)
        except KeyHeld as held:
            return self.ask(form, Said(status=409, holder=held.holder))
        except (MovedOn, OrderRefused, Busy):
            notice = _("Nothing was done: something else was changing it just then. Try again.")
            return self.ask(form, Said(status=409, notice=notice))
        except RequestReused:
            notice = _(
                "Nothing was done: this form had been sent before, with something else in it. Send it again."
            )
            return self.ask(self._anew(), Said(status=409, notice=notice))
        except Lacking:
            raise
        except NotAllowed as problem:
            # By the project's own authorizer.
            form.add_error(None, str(problem))
            return self.ask(form, Said(status=403))
        except (InvalidJob, ReasonNeeded) as problem:
            form.add_error(None, str(problem))
            return self.ask(form, Said(status=422))
        return self.told(acted, form)

    def told(self, acted: Any, form: ReasonForm) -> HttpResponse:
        """The answer to what was done; the next page says it."""
        news.keep(self.request, acted, facts=form.facts())
        return self.led_on()

    def led_on(self) -> HttpResponse:
        """Back to where one came from."""
        return live.private(HttpResponse(status=303, headers={"Location": self.leads_to()}))

    @abstractmethod
    def perform(self, form: ReasonForm) -> Any:
        """Do what the form says; what `told` tells."""

    @abstractmethod
    def ask(self, form: ReasonForm | None, said: Said) -> HttpResponse:
        """The form, new or as it was sent, and what there is to say."""

    @abstractmethod
    def leads_to(self) -> str:
        """Where one comes from, and goes back to."""

    def new_form(self, **initial: Any) -> ReasonForm:
        """An empty form, with an id of its own."""
        return self.form(needs_reason=self.act in NEED_REASON, initial=initial)

    def answer(self, context: dict[str, Any], said: Said) -> HttpResponse:
        """The form as a page, or alone where a script asks."""
        context |= {
            "act": self.act,
            "address": self.request.get_full_path(),
            "back": self.leads_to(),
            "needs_reason": self.act in NEED_REASON,
            "said": said,
        }
        if live.is_refresh(self.request):
            template = f"shiftboss/_{self.template}.html"
        else:
            template = f"shiftboss/{self.template}.html"
            context |= frame.around(self.request, self.here)
        return live.private(render(self.request, template, context, status=said.status))

    def _anew(self) -> ReasonForm:
        typed = self.request.POST.copy()
        typed["request_id"] = str(uuid4())
        return self.form(typed, needs_reason=self.act in NEED_REASON)
