"""Who acts on a page, and what they lack."""

from django.http import HttpRequest

from shiftboss.permissions import Person, Via
from shiftboss.queue.errors import NotAllowed


class NotStaff(NotAllowed):
    """Somebody is logged in who is not of the project's staff."""


def person_of(request: HttpRequest) -> Person:
    """Who acts on a page."""
    return Person.of_user(request.user, via=Via.CONSOLE)
