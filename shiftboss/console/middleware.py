"""The content security policy of the console's pages."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


class ContentSecurityPolicyMiddleware:
    """Lock down the console's own answers; the host project's other pages are left as they are."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add the policy to an answer of an address that belongs to Shiftboss."""
        response = self.get_response(request)
        match = request.resolver_match
        if match is not None and "shiftboss" in match.app_names:
            response.headers["Content-Security-Policy"] = POLICY
        return response
