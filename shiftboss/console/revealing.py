"""Whose arguments a person has let themselves be shown. It stays with the login, and ends with it.

The act itself, and its entry of the audit, is `acts.reveal`; here is only what the pages of one browser remember.
"""

import time

from django.http import HttpRequest

REVEALED_SECONDS = 1800.0
REMEMBERED = 50
"""Jobs; of more the longest ago are forgotten."""

_KEY = "shiftboss_revealed"


def remember(request: HttpRequest, job_id: int) -> None:
    """Show the arguments of this job from now on."""
    kept = {**request.session.get(_KEY, {}), str(job_id): time.time() + REVEALED_SECONDS}
    newest = sorted(kept.items(), key=lambda one: -one[1])[:REMEMBERED]
    request.session[_KEY] = dict(newest)


def is_revealed(request: HttpRequest, job_id: int) -> bool:
    """Whether the arguments of this job are to be shown."""
    until = request.session.get(_KEY, {}).get(str(job_id))
    return until is not None and time.time() < until
