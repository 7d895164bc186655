"""What the API answers when something goes wrong, in one table: error, status, code, facts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import django.db
import psycopg
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja.errors import ValidationError

from shiftboss.console.api import mistakes
from shiftboss.console.filters import BadFilter
from shiftboss.permissions import Lacking
from shiftboss.queue.errors import (
    Busy,
    HostSilent,
    InvalidJob,
    KeyHeld,
    MovedOn,
    NoSuchBackfill,
    NoSuchCommand,
    NoSuchJob,
    NoSuchProgram,
    NoSuchRoll,
    NoSuchWorker,
    NotAllowed,
    OrderRefused,
    ReasonNeeded,
    RequestReused,
    RollRefused,
    ShiftbossError,
)

RETRY_AFTER_SECONDS = 5


class Unauthenticated(ShiftbossError):
    """Nobody is known who asks. `token_shown`: a token was, and it is not or no longer valid."""

    def __init__(self, message: str, *, token_shown: bool) -> None:
        super().__init__(message)
        self.token_shown = token_shown


class ForeignForm(ShiftbossError):
    """A browser's session asks for an act without the token that shows that its person meant it."""


class NoSuchAddress(ShiftbossError):
    """The API has nothing at this address."""


class WrongMethod(ShiftbossError):
    """The address does not take this method; `allowed` are those that it takes."""

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"this address takes {allowed}, not {method}")
        self.allowed = allowed


class LengthUnknown(ShiftbossError):
    """A body comes in chunks, without its length: Django would take it for none."""


class BodyTooBig(ShiftbossError):
    """The body is larger than any that the API needs."""


class NotJson(ShiftbossError):
    """The body is said to be something else than JSON."""


class Malformed(ShiftbossError):
    """The body is no JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How an error is answered. `message` replaces the error's own text; `facts` are added to the body."""

    status: int
    code: str
    when: str
    message: str | None = None
    facts: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    headers: Callable[[Any], Mapping[str, str]] = field(default=lambda _: {})


def _invalid(problem: ValidationError) -> dict[str, Any]:
    return {"errors": mistakes.said(problem.errors)}


def _challenge(problem: Unauthenticated) -> dict[str, str]:
    error = ', error="invalid_token"' if problem.token_shown else ""
    return {"WWW-Authenticate": f'Bearer realm="shiftboss"{error}'}


def _later(_: Exception) -> dict[str, str]:
    return {"Retry-After": str(RETRY_AFTER_SECONDS)}


_AWAY = Answer(
    status=503,
    code="database_unavailable",
    when="the database cannot be reached; whether an act was done is unknown, so repeat it with its key",
    message="the database cannot be reached; jobs that run go on",
    headers=_later,
)

ANSWERS: dict[type[Exception], Answer] = {
    Unauthenticated: Answer(
        status=401, code="unauthenticated", when="no session and no valid token", headers=_challenge
    ),
    ForeignForm: Answer(
        status=403, code="csrf_failed", when="an act by a session without its CSRF token; tokens need none"
    ),
    Lacking: Answer(
        status=403,
        code="not_allowed",
        when="a permission is missing, which `permission` names, or the account is not staff",
        facts=lambda problem: {"permission": problem.permission},
    ),
    NotAllowed: Answer(
        status=403,
        code="not_allowed",
        when="a permission is missing, which `permission` names, or the account is not staff",
    ),
    NoSuchBackfill: Answer(status=404, code="no_such_backfill", when="there is no such backfill"),
    NoSuchWorker: Answer(status=404, code="no_such_worker", when="there is no such worker, or no more"),
    NoSuchProgram: Answer(
        status=404, code="no_such_program", when="there is no such host, or it has no such program or pool"
    ),
    NoSuchRoll: Answer(status=404, code="no_such_roll", when="there is no such rolling restart, or no more"),
    NoSuchCommand: Answer(status=404, code="no_such_command", when="there is no such command, or no more"),
    NoSuchJob: Answer(status=404, code="no_such_job", when="there is no such job, or no more"),
    NoSuchAddress: Answer(status=404, code="not_found", when="the API has nothing at this address"),
    WrongMethod: Answer(
        status=405,
        code="method_not_allowed",
        when="the address does not take this method",
        headers=lambda problem: {"Allow": problem.allowed},
    ),
    MovedOn: Answer(
        status=409,
        code="moved_on",
        when="the job's `state` does not allow the act; nothing was changed",
        facts=lambda problem: {"job_id": str(problem.job_id), "act": str(problem.act), "state": problem.state},
    ),
    KeyHeld: Answer(
        status=409,
        code="key_held",
        when="another live job, the `holder`, has the job's key",
        facts=lambda problem: {"key": problem.key, "holder": str(problem.holder)},
    ),
    OrderRefused: Answer(
        status=409,
        code="order_refused",
        when="the worker is gone, or ends sooner already, as its `state` says; nothing was changed",
        facts=lambda problem: {
            "worker_id": str(problem.worker_id),
            "act": str(problem.act),
            "state": problem.state,
        },
    ),
    RollRefused: Answer(
        status=409,
        code="roll_refused",
        when="another rolling restart runs, or this one has ended; `roll_id` says which",
        facts=lambda problem: {"roll_id": str(problem.roll_id)},
    ),
    HostSilent: Answer(
        status=409, code="host_silent", when="the agent of the host does not answer; nothing was asked of it"
    ),
    Busy: Answer(
        status=409,
        code="busy",
        when="somebody else is changing it just now; try again",
        headers=lambda _: {"Retry-After": "1"},
    ),
    RequestReused: Answer(
        status=409, code="request_reused", when="the same Idempotency-Key came before with another request"
    ),
    LengthUnknown: Answer(
        status=411, code="length_required", when="a body without Content-Length, in chunks, cannot be read"
    ),
    BodyTooBig: Answer(status=413, code="too_large", when="the body is larger than any act needs"),
    RequestDataTooBig: Answer(
        status=413,
        code="too_large",
        when="the body is larger than any act needs",
        message="the body is larger than this project takes",
    ),
    NotJson: Answer(status=415, code="not_json", when="the body's Content-Type is not application/json"),
    Malformed: Answer(status=400, code="malformed", when="the body is no JSON"),
    ReasonNeeded: Answer(status=422, code="reason_needed", when="the act wants a reason, or cannot keep this one"),
    InvalidJob: Answer(status=422, code="invalid", when="a value cannot be; `message` or `errors` say which"),
    BadFilter: Answer(status=422, code="invalid", when="a value cannot be; `message` or `errors` say which"),
    ValidationError: Answer(
        status=422,
        code="invalid",
        when="a value cannot be; `message` or `errors` say which",
        message="the request is not as it must be; `errors` says where",
        facts=_invalid,
    ),
    psycopg.errors.QueryCanceled: Answer(
        status=503,
        code="database_slow",
        when="the database did not answer in time",
        message="the database did not answer in time",
        headers=_later,
    ),
    psycopg.errors.UndefinedTable: Answer(
        status=503,
        code="not_migrated",
        when="the database has not been migrated",
        message="the database has not been migrated: run this project's migrations",
        headers=_later,
    ),
    psycopg.OperationalError: _AWAY,
    psycopg.InterfaceError: _AWAY,
    django.db.OperationalError: _AWAY,
    django.db.InterfaceError: _AWAY,
}
"""The most special class that fits is the answer. An error that has none is the project's to answer and to log."""


def answer(request: HttpRequest, problem: Any) -> HttpResponse:
    """The answer to an error of `ANSWERS`; another one is raised again."""
    cause = problem.__cause__
    fits = _fitting(cause) if isinstance(problem, django.db.Error) and cause is not None else None
    fits = fits or _fitting(problem)
    if fits is None:
        raise problem
    body = {"code": fits.code, "message": fits.message or str(problem), **fits.facts(problem)}
    return JsonResponse(body, status=fits.status, headers=dict(fits.headers(problem)))


def described(status: int) -> str:
    """The codes that come with a status, and when."""
    fitting = {one.code: one.when for one in ANSWERS.values() if one.status == status}
    return "; ".join(f"`{code}`: {when}" for code, when in fitting.items())


def _fitting(problem: BaseException) -> Answer | None:
    return next((ANSWERS[kind] for kind in type(problem).__mro__ if kind in ANSWERS), None)


def of_framework(request: HttpRequest, problem: Any) -> HttpResponse:
    """The answer to an error that the framework itself has raised: a body that `parse` refused, or none."""
    return answer(
        request, problem.__cause__ if isinstance(problem.__cause__, Malformed) else Malformed(str(problem))
    )


HANDLED: tuple[type[Exception], ...] = (*ANSWERS, django.db.Error, Http404)
