"""Who may see a page of the console. This is the one place that decides.

Today: people of the project's staff who are logged in. A project's other users (its customers, say)
share the same login and see nothing here.
"""

from functools import wraps

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from shiftboss.console.live import is_refresh
from shiftboss.console.signature import View
from shiftboss.queue.errors import NotAllowed


def required(view: View) -> View:
    """Send strangers to the login and refuse those who may not see the page. Raises NotAllowed."""

    @wraps(view)
    def guarded(request: HttpRequest, **arguments: object) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_login(request)
        if not getattr(request.user, "is_staff", False):
            raise NotAllowed("the console is for staff")
        return view(request, **arguments)

    return guarded


def _to_login(request: HttpRequest) -> HttpResponseBase:
    match = request.resolver_match
    login = reverse("shiftboss:login", current_app=match.namespace if match else None)
    redirect = redirect_to_login(request.get_full_path(), login)
    # A refresh must move the whole page, not put the login form into a part of it.
    return HttpResponseClientRedirect(redirect.url) if is_refresh(request) else redirect
