"""Forms that were sent from elsewhere, or under an earlier login. The pages here answer them themselves.

A project's own answer to such a form (`CSRF_FAILURE_VIEW`) would not lead the person back to what they were doing.
Views of forms are therefore exempt from the project's check, and `trouble` makes the same check instead.
"""

from enum import Enum, auto
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware import csrf
from django.views.decorators.csrf import csrf_exempt

from shiftboss.console.signature import View


class Trouble(Enum):
    """Why a form is not to be believed."""

    STALE = auto()
    """Its token is missing or an older one: somebody has logged in again since it was opened."""
    FOREIGN = auto()
    """It was not sent from an address of this site."""


class StaleForm(Exception):
    """A form was sent that is not to be believed; nothing was done."""


def checked(view: View) -> View:
    """A view of a form that is not asked again in its place. Raises StaleForm."""

    @csrf_exempt
    @wraps(view)
    def checking(request: HttpRequest, **arguments: object) -> HttpResponseBase:
        if trouble(request):
            raise StaleForm("a form is older than its login, or another site's")
        return view(request, **arguments)

    return checking


class _Check(csrf.CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def trouble(request: HttpRequest) -> Trouble | None:
    """Whether a form was sent by somebody else's page, or is too old to tell; None where all is well."""
    check = _Check(_unused)
    check.process_request(request)
    reason: Any = check.process_view(request, _unused, (), {})
    if reason is None:
        return None
    return Trouble.STALE if str(reason).startswith("CSRF") else Trouble.FOREIGN


def _unused(request: HttpRequest) -> HttpResponseBase:
    raise AssertionError("the check calls no view")
