"""Who acts on a page, and what they lack."""

from django.http import HttpRequest

from shiftboss.permissions import Person, Via
from shiftboss.queue.errors import NotAllowed


class NotStaff(NotAllowed):
    """Somebody is logged in who is not of the project's staff."""


_PERSON = "shiftboss_person"


def person_of(request: HttpRequest) -> Person:
    """Who acts on a page. The project is asked for their scope once a request.

    Raises NotAllowed where it gives none.
    """
    user, person = getattr(request, _PERSON, (None, None))
    if person is None or user is not request.user:
        person = Person.of_user(request.user, via=Via.CONSOLE)
        setattr(request, _PERSON, (request.user, person))
    return person
