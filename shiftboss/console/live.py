"""Pages that keep themselves fresh: a page, its live part, and 204 where nothing has changed.

A page `NAME.html` includes its live part `_NAME.html`. The browser asks again for the page's own address
and sends the version that it shows; it is answered with the part alone, or with 204. (htmx swaps a 304
that scripts can see and would empty the page.)
"""

from hashlib import blake2b
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.safestring import mark_safe
from django_htmx.middleware import HtmxDetails

VERSION_HEADER = "Shiftboss-Version"


def is_refresh(request: HttpRequest) -> bool:
    """Whether a page's script asks, so that the live part alone is wanted."""
    return bool(HtmxDetails(request))


def answer(request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """The page, or to a refresh its live part, or 204 where the version sent is still the newest."""
    part = render_to_string(f"shiftboss/_{name}.html", context, request=request)
    version = blake2b(part.encode(), digest_size=12).hexdigest()
    if not is_refresh(request):
        template = f"shiftboss/{name}.html"
    elif request.headers.get(VERSION_HEADER) == version:
        return _private(HttpResponse(status=204))
    else:
        template = "shiftboss/_live.html"
    # The part comes out of a template, so it is escaped already.
    live = {
        "address": request.get_full_path(),
        "here": name,
        "loaded_at": timezone.now(),
        "part": mark_safe(part),
        "person": request.user,
        "version": version,
        "version_header": VERSION_HEADER,
    }
    return _private(render(request, template, context | live))


def _private(response: HttpResponse) -> HttpResponse:
    response.headers["Cache-Control"] = "no-store"
    patch_vary_headers(response, ["HX-Request", VERSION_HEADER])
    return response
