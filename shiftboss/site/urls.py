"""The bundled project's addresses: the console at the root."""

from django.urls import include, path

urlpatterns = [path("", include("shiftboss.urls"))]
