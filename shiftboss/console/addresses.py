"""Addresses of the console's pages, under whatever prefix the project has given it."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse


def of(request: HttpRequest, name: str, **arguments: Any) -> str:
    """The address of a page, in the same mounting of the console as the request's own."""
    match = request.resolver_match
    return reverse(f"shiftboss:{name}", kwargs=arguments, current_app=match.namespace if match else None)
