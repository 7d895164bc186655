"""What stands around every page: the strip, who is logged in, where one can go, and what an act has just done."""

from functools import partial
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from shiftboss.console import ages, news, strip
from shiftboss.console.people import person_of
from shiftboss.console.results import take as result
from shiftboss.permissions import VIEW_AUDIT
from shiftboss.queue.authority import Scoped


def around(request: HttpRequest, here: str) -> dict[str, Any]:
    """The context of `page.html`; `here` is the page that the navigation marks."""
    return {
        "here": here,
        "loaded_at": timezone.now(),
        "ages": ages.words(),
        "news": news.take(request) or result(request),
        "person": request.user,
        # only pages without a live part, which has a strip of its own, ask for it
        "strip": SimpleLazyObject(partial(strip.shown, request)),
        # hosts belong to no queue and no owner
        "sees_hosts": not isinstance(person_of(request).authority, Scoped),
        "sees_audit": person_of(request).allows(VIEW_AUDIT),
    }
