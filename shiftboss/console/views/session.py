"""Logging in and out, with Django's own accounts."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import reverse_lazy

login = LoginView.as_view(
    template_name="shiftboss/login.html",
    next_page=reverse_lazy("shiftboss:overview"),
)
logout = LogoutView.as_view(next_page=reverse_lazy("shiftboss:login"))
