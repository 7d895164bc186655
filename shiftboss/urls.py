"""The app's addresses; a project includes them under any prefix."""

from django.urls import include, path

from shiftboss.console.api.mount import addresses as api

app_name = "shiftboss"
urlpatterns = [path("api/v1/", api), path("", include("shiftboss.console.urls"))]
