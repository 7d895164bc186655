"""What stands before every address of the API: who asks, what may come in, and what every answer carries."""

import json
from functools import wraps
from typing import Any, NoReturn, cast

from django.db import connections, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from ninja.parser import Parser

from shiftboss.console import csrf, tokens
from shiftboss.console.api import errors
from shiftboss.console.signature import View
from shiftboss.permissions import Person, Via

MAX_BODY_BYTES = 64 * 1024
"""More than any act can need: a reason of 1000 characters, each written as an escape, has twelve thousand."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Bearer:
    """Finds out who asks: by a bearer token where one is shown, else by the session of a browser."""

    openapi_security_schema = {"type": "http", "scheme": "bearer"}

    def __call__(self, request: HttpRequest) -> Person:
        """The person. Raises Unauthenticated, ForeignForm."""
        header = request.headers.get("Authorization")
        return _by_session(request) if header is None else _by_token(header)


def _by_token(header: str) -> Person:
    scheme, _, shown = header.partition(" ")
    if scheme.lower() != "bearer":
        raise errors.Unauthenticated("show a token: Authorization: Bearer sb_…", token_shown=False)
    person = tokens.person_of(shown.strip())
    if person is None:
        raise errors.Unauthenticated(
            "this token is unknown, expired or revoked, or its user is not active", token_shown=True
        )
    return person


def _by_session(request: HttpRequest) -> Person:
    user = request.user
    if not (user.is_authenticated and user.is_active):
        raise errors.Unauthenticated("show a token (Authorization: Bearer sb_…) or log in", token_shown=False)
    if request.method not in SAFE and csrf.trouble(request):
        raise errors.ForeignForm("a session needs its CSRF token for an act, as the header X-CSRFToken")
    return Person.of_user(user, via=Via.API)


class _LetIn(HttpRequest):
    """A request that `Bearer` has let in, as the framework hands it on."""

    auth: Person


def caller(request: HttpRequest) -> Person:
    """Who shows the token, or has logged in."""
    return cast(_LetIn, request).auth


class StrictJson(Parser):
    """Reads bodies as JSON has them: no NaN, no Infinity, and nothing that is said twice."""

    def parse_body(self, request: HttpRequest) -> Any:
        """What the body says. Raises Malformed."""
        try:
            return json.loads(request.body, parse_constant=_refuse_constant, object_pairs_hook=_once)
        except errors.Malformed:
            raise
        except RecursionError:
            raise errors.Malformed("the body is nested too deeply") from None
        except ValueError as problem:
            # Its text may quote the body, so it is not passed on.
            raise errors.Malformed(f"the body is no JSON ({type(problem).__name__})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise errors.Malformed(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise errors.Malformed("the body says something twice")
    return said


def guarded(view: View) -> View:
    """The view of an address behind the door: sizes, types and methods are checked, and nothing is stored."""

    @wraps(view)
    def checked(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        try:
            _check_body(request)
            response = view(request, **arguments)
            if response.status_code == 405:
                allowed = ", ".join(sorted(response.headers["Allow"].split(", ")))
                raise errors.WrongMethod(str(request.method), allowed)
        except errors.HANDLED as problem:
            response = errors.answer(request, problem)
        response.headers["Cache-Control"] = "no-store"
        patch_vary_headers(response, ["Authorization", "Cookie"])
        return response

    outermost: View = csrf_exempt(checked)  # `Bearer` checks sessions itself, and tokens need no such check.
    for alias in connections:
        # An act is a transaction of its own: it must not be undone by what comes after its answer.
        outermost = transaction.non_atomic_requests(using=alias)(outermost)
    return outermost


def _check_body(request: HttpRequest) -> None:
    # What is not read must not be taken for what was not sent: a reason, say.
    if "Transfer-Encoding" in request.headers:
        raise errors.LengthUnknown("send the body with its Content-Length, not in chunks")
    # The length first, before anything is read.
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or len(length) > 18 or int(length) > MAX_BODY_BYTES:
        raise errors.BodyTooBig(f"a body has at most {MAX_BODY_BYTES} bytes")
    # An empty form too: looking for its CSRF token would read it.
    typed = int(length) or (request.content_type or "").startswith(("multipart/", "application/x-www-form"))
    if typed and request.content_type != "application/json":
        raise errors.NotJson("send the body as application/json")


def nothing_here(request: HttpRequest, **_: Any) -> HttpResponseBase:
    """The answer at every address that the API does not have. Raises NoSuchAddress."""
    raise errors.NoSuchAddress(f"there is nothing at {request.path[:200]}")
