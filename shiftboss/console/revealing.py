"""Whose arguments a person has let themselves be shown. It stays with the login, and ends with it.

The act itself, and its entry of the audit, is `acts.reveal`; here is what the pages of one browser remember, and
what programs do, which have no login that could.
"""

import time

from django.http import HttpRequest

from shiftboss import acts
from shiftboss.console import query
from shiftboss.permissions import VIEW_ARGUMENTS, Person, require
from shiftboss.queue.authority import System
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run

REVEALED_SECONDS = 1800.0
REMEMBERED = 50
"""Jobs; of more the longest ago are forgotten."""

LISTS = "lists"
"""In the place of a job's id: arguments of all jobs, as columns of lists and in searches."""

_KEY = "shiftboss_revealed"


def remember(request: HttpRequest, what: int | str) -> None:
    """Show the arguments of this job, or in `LISTS`, from now on."""
    kept = {**request.session.get(_KEY, {}), str(what): time.time() + REVEALED_SECONDS}
    newest = sorted(kept.items(), key=lambda one: -one[1])[:REMEMBERED]
    request.session[_KEY] = dict(newest)


def is_revealed(request: HttpRequest, what: int | str) -> bool:
    """Whether the arguments of this job, or in `LISTS`, are to be shown."""
    until = request.session.get(_KEY, {}).get(str(what))
    return until is not None and time.time() < until


def search(text: str, *, by: Person) -> None:
    """Keep in the audit that a program looks into arguments, where this query does. Raises Lacking.

    Once for each `REVEALED_SECONDS` of one caller, as of one browser: not at each page of what is found.
    """
    asked = query.parse(text)
    if asked.mistakes or not any(term.name == "args" for term in asked.terms):
        return
    require(VIEW_ARGUMENTS, by=by)
    span = f"arguments in lists, span {int(time.time() // REVEALED_SECONDS)}"
    kept = audit.audited(span, authority=System(), actor_kind=by.kind, actor_id=by.id)
    if run(kept) is None:
        acts.reveal_in_lists(by=by, request_id=span)
