"""Logging in and out, with Django's own accounts."""

from math import ceil
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy

from shiftboss.console import throttle


class Login(LoginView):
    """Django's, with a limit to how often it may be tried."""

    template_name = "shiftboss/login.html"

    def post(self, request: HttpRequest, *args: Any, **arguments: Any) -> HttpResponse:
        """Check name and password, or say when that may be tried again."""
        name, address = self._who()
        if seconds := throttle.attempt(name, address):
            form = self.get_form_class()(request, initial={"username": name})
            context = self.get_context_data(form=form, wait_minutes=ceil(seconds / 60))
            answer = self.render_to_response(context, status=429)
            answer.headers["Retry-After"] = str(seconds)
            return answer
        return super().post(request, *args, **arguments)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Let them in."""
        throttle.succeeded(*self._who())
        return super().form_valid(form)

    def _who(self) -> tuple[str, str]:
        return self.request.POST.get("username", ""), self.request.META.get("REMOTE_ADDR", "")


login = Login.as_view(next_page=reverse_lazy("shiftboss:overview"))
logout = LogoutView.as_view(next_page=reverse_lazy("shiftboss:login"))
