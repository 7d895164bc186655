"""The app's addresses; a project includes them under any prefix."""

from django.urls import include, path

app_name = "shiftboss"
urlpatterns = [path("", include("shiftboss.console.urls"))]
