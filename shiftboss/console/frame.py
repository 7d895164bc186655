"""What stands around every page: who is logged in, where one can go, and what an act has just done."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from shiftboss.console import news
from shiftboss.console.people import person_of
from shiftboss.permissions import VIEW_AUDIT


def around(request: HttpRequest, here: str) -> dict[str, Any]:
    """The context of `page.html`; `here` is the page that the navigation marks."""
    return {
        "here": here,
        "loaded_at": timezone.now(),
        "news": news.take(request),
        "person": request.user,
        "sees_audit": person_of(request).allows(VIEW_AUDIT),
    }
