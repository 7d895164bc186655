"""A host project that mounts the console twice."""

from django.urls import include, path

urlpatterns = [
    path("one/", include("shiftboss.urls")),
    path("two/", include("shiftboss.urls", namespace="again")),
]
