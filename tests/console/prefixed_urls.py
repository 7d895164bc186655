"""A host project that mounts the console under a prefix, beside a page of its own."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def shop(request: HttpRequest) -> HttpResponse:
    """A page that is none of Shiftboss's business, with a script of its own."""
    return HttpResponse("<script>buy()</script>")


urlpatterns = [path("shop/", shop), path("ops/queue/", include("shiftboss.urls"))]
