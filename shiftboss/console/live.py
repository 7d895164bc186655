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
from django.utils.cache import patch_vary_headers
from django.utils.safestring import mark_safe
from django_htmx.middleware import HtmxDetails

from shiftboss.console import ages, frame, strip

VERSION_HEADER = "Shiftboss-Version"


def is_refresh(request: HttpRequest) -> bool:
    """Whether a page's script asks, so that the live part alone is wanted."""
    return bool(HtmxDetails(request))


def answer(request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """The page, or to a refresh its live part, or 204 where the version sent is still the newest.

    The strip stands above the part and is refreshed with it; of a `Whole` in the context it says what that says.
    """
    above = {"strip": strip.shown(request, context.get("whole"))}
    part = "".join(
        render_to_string(f"shiftboss/_{piece}.html", context | above, request=request) for piece in ("strip", name)
    )
    version = blake2b(ages.without(part).encode(), digest_size=12).hexdigest()
    if not is_refresh(request):
        template = f"shiftboss/{name}.html"
    elif request.headers.get(VERSION_HEADER) == version:
        return private(HttpResponse(status=204))
    else:
        template = "shiftboss/_live.html"
    # The part comes out of a template, so it is escaped already.
    live = {
        "address": request.get_full_path(),
        "part": mark_safe(part),
        "version": version,
        "version_header": VERSION_HEADER,
    }
    around = {} if is_refresh(request) else frame.around(request, name)
    return private(render(request, template, context | around | live))


def private(response: HttpResponse) -> HttpResponse:
    """The answer, which nobody may store or take for another."""
    response.headers["Cache-Control"] = "no-store"
    patch_vary_headers(response, ["HX-Request", VERSION_HEADER])
    return response
