"""Whose arguments a person has let themselves be shown. It stays with the login, and ends with it.

The act itself, and its entry of the audit, is `acts.reveal`; here is only what the pages of one browser remember.
"""

import time

from django.http import HttpRequest

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
