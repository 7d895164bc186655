"""Who may see a page of the console. This is the one place that decides.

People of the project's staff who are logged in and have the page's permission. A project's other users (its
customers, say) share the same login and see nothing here.
"""

from functools import wraps

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_htmx.http import HttpResponseClientRedirect

from shiftboss.console import addresses, news, whole
from shiftboss.console.live import is_refresh
from shiftboss.console.people import NotStaff, person_of
from shiftboss.console.signature import View
from shiftboss.permissions import VIEW, require


def required(view: View, *, permission: str = VIEW) -> View:
    """Send strangers to the login and refuse those who may not see the page. Raises NotStaff, Lacking."""

    @wraps(view)
    def guarded(request: HttpRequest, **arguments: object) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_login(request)
        if not (request.user.is_active and getattr(request.user, "is_staff", False)):
            raise NotStaff("the console is for staff")
        require(permission, by=person_of(request))
        setattr(request, _PASSED, True)
        if news.waits(request):
            whole.forget()
        return view(request, **arguments)

    return guarded


_PASSED = "shiftboss_passed"


def passed(request: HttpRequest) -> bool:
    """Whether whoever asks was found to have the page's permission, while the database still answered."""
    return getattr(request, _PASSED, False)


def _to_login(request: HttpRequest) -> HttpResponseBase:
    redirect = redirect_to_login(request.get_full_path(), addresses.of(request, "login"))
    # A refresh must move the whole page, not put the login form into a part of it.
    return HttpResponseClientRedirect(redirect.url) if is_refresh(request) else redirect
