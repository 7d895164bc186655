"""Errors that pages answer, in one table: what happened, the status, and what is said."""

from functools import wraps
from typing import Any

import django.db
import psycopg
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from shiftboss.console import strip
from shiftboss.console.csrf import StaleForm
from shiftboss.console.filters import BadFilter
from shiftboss.console.people import NotStaff
from shiftboss.console.permissions import passed
from shiftboss.console.signature import View
from shiftboss.permissions import Lacking
from shiftboss.queue.errors import (
    HostSilent,
    NoSuchBackfill,
    NoSuchCommand,
    NoSuchJob,
    NoSuchOperation,
    NoSuchProgram,
    NoSuchRoll,
    NoSuchWorker,
    NotAllowed,
    OutOfScope,
    RollRefused,
)

UNAVAILABLE = 503

# The first class that fits is the answer: (error, status, headline, advice with the error's own facts).
ANSWERS: list[tuple[type[Exception], int, Promise, Promise]] = [
    (
        NoSuchBackfill,
        404,
        _("There is no such backfill"),
        _("It never existed. The list of backfills shows all that do."),
    ),
    (
        NoSuchWorker,
        404,
        _("There is no such worker"),
        _("It never existed, or it was forgotten a day after its end. The page of the workers shows all that do."),
    ),
    (
        NoSuchProgram,
        404,
        _("There is no such program"),
        _("No agent has told of this host, or it has no such program or pool."),
    ),
    (
        NoSuchCommand,
        404,
        _("There is no such command"),
        _(
            "Nothing was asked of a host under this number, or it was forgotten after a week. The audit has it"
            " still."
        ),
    ),
    (
        NoSuchRoll,
        404,
        _("There is no such rolling restart"),
        _("It never existed, or it was forgotten 30 days after its end. The audit has it still."),
    ),
    (
        RollRefused,
        409,
        _("Nothing was done"),
        _("Another rolling restart runs, or this one has ended just then. The page of rolling restarts tells."),
    ),
    (
        HostSilent,
        409,
        _("The host does not answer"),
        _("Its agent is silent, so nothing was asked of it. Look whether shiftboss_listener runs there."),
    ),
    (
        NoSuchOperation,
        404,
        _("There is no such act"),
        _("The audit shows all that were done."),
    ),
    (
        NoSuchJob,
        404,
        _("There is no such job"),
        _("It never existed, or its history has been pruned by retention."),
    ),
    (
        BadFilter,
        400,
        _("This address cannot be read"),
        _("A filter in it has a value that does not exist. Start again from the list of jobs."),
    ),
    (
        StaleForm,
        403,
        _("Nothing was done"),
        _("This form is older than your login, or was not sent from this site. Open its page again, and repeat."),
    ),
    (
        NotStaff,
        403,
        _("You may not see this page"),
        _("The console is for staff. Ask an administrator to make your account a staff account."),
    ),
    (
        Lacking,
        403,
        _("You may not do this"),
        _(
            "It needs the permission %(permission)s. Ask an administrator to give it to you, by itself or with a"
            " group; the command shiftboss_roles makes a group for each role."
        ),
    ),
    (
        OutOfScope,
        403,
        _("This is not within your scope"),
        _("You see and act on %(scope)s only. Somebody who sees more can help, or an administrator."),
    ),
    (
        NotAllowed,
        403,
        _("You may not do this"),
        _("A rule of this project refuses it. The log of the console says more; ask an administrator."),
    ),
    (
        psycopg.errors.QueryCanceled,
        503,
        _("The database did not answer in time"),
        _("The page was given up. Workers are not affected by this page; try again in a moment."),
    ),
    (
        psycopg.errors.UndefinedTable,
        503,
        _("The database has not been migrated"),
        _("Run the migrations of this project, then reload."),
    ),
    (
        psycopg.OperationalError,
        503,
        _("The database cannot be reached"),
        _("Jobs that run now go on; nothing can be shown until the database answers again."),
    ),
    (
        psycopg.InterfaceError,
        503,
        _("The database cannot be reached"),
        _("Jobs that run now go on; nothing can be shown until the database answers again."),
    ),
]

_ANSWERED: tuple[type[Exception], ...] = (*(error for error, *_rest in ANSWERS), django.db.Error)


def answered(view: View) -> View:
    """Answer the errors of `ANSWERS` with a page; all others are the project's own to answer."""

    @wraps(view)
    def answering(request: HttpRequest, **arguments: object) -> HttpResponseBase:
        try:
            return view(request, **arguments)
        except _ANSWERED as problem:
            return _page(request, problem)

    return answering


def _page(request: HttpRequest, problem: Exception) -> HttpResponseBase:
    cause = problem.__cause__ if isinstance(problem, django.db.Error) else problem
    for error, status, headline, advice in ANSWERS:
        if isinstance(cause, error):
            context: dict[str, Any] = {"headline": headline, "advice": str(advice) % vars(cause), "status": status}
            if status == UNAVAILABLE and passed(request):
                context["strip"] = strip.remembered(request)
            response = render(request, "shiftboss/error.html", context, status=status)
            response.headers["Cache-Control"] = "no-store"
            return response
    raise problem
