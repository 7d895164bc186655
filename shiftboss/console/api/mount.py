"""The API as a whole, and its addresses for a project's URLs."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, re_path
from ninja import NinjaAPI
from ninja.errors import HttpError
from ninja.renderers import BaseRenderer

from shiftboss.console.api import deeds, errors, hosts, reads, rolls
from shiftboss.console.api.door import Bearer, StrictJson, caller, guarded, nothing_here
from shiftboss.console.stored import dumps
from shiftboss.permissions import VIEW, require

VERSION = "1"
NAMESPACE = "api"

DESCRIPTION = """\
What the console does, for programs: the same acts, names, permissions and audit.
Show a token (`Authorization: Bearer sb_…`), or come with a session of the console and its CSRF token.
"""


class StoredJson(BaseRenderer):
    """Answers as JSON, with what is stored as JSON put in as it is."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:
        """The body."""
        return dumps(data)


# The framework's own page for its schema loads scripts from elsewhere, which the content security policy of the
# console forbids for good reasons; and its schema would be open to strangers. `openapi` below serves it instead.
api = NinjaAPI(
    title="Shiftboss",
    version=VERSION,
    description=DESCRIPTION,
    urls_namespace="shiftboss-api",
    docs_url=None,
    openapi_url=None,
    auth=Bearer(),
    parser=StrictJson(),
    renderer=StoredJson(),
)
api.add_router("", reads.router)
api.add_router("", hosts.router)
api.add_router("", deeds.router)
api.add_router("", rolls.router)  # after the acts: none of its ids is a word
for _error in errors.HANDLED:
    api.add_exception_handler(_error, errors.answer)
api.add_exception_handler(HttpError, errors.of_framework)


@api.get("/openapi.json", include_in_schema=False)
def openapi(request: HttpRequest) -> HttpResponse:
    """The schema, for whoever may see jobs: like everything here it says nothing to strangers."""
    require(VIEW, by=caller(request))
    return HttpResponse(dumps(schema(request.path.removesuffix("openapi.json"))), content_type="application/json")


def schema(prefix: str) -> dict[str, Any]:
    """The schema of the API where it is mounted at this path."""
    made = dict(api.get_openapi_schema(path_prefix=prefix))
    operations = [one for path in made["paths"].values() for one in path.values()]
    for operation in operations:
        for status, response in operation["responses"].items():
            # The standard library's phrases differ from one Python to the next.
            response["description"] = errors.described(int(status)) or "Done"
    return made


def _addresses() -> tuple[list[URLPattern], str, str]:
    patterns, app_name, _ = api.urls
    behind = [
        URLPattern(one.pattern, guarded(one.callback), one.default_args, one.name)
        for one in patterns
        if isinstance(one, URLPattern) and one.name != "api-root"
    ]
    return [*behind, re_path("", guarded(nothing_here))], app_name, NAMESPACE


addresses = _addresses()
"""For `path("api/v1/", addresses)`."""
