"""The console's pages. `page` stands around every one that shows the record."""

from django.urls import path

from shiftboss.console.errors import answered
from shiftboss.console.permissions import required
from shiftboss.console.signature import View
from shiftboss.console.views import jobs, overview, session


def page(view: View) -> View:
    """A view for people who may see it, whose errors are answered with pages."""
    return answered(required(view))


urlpatterns = [
    path("", page(overview.show), name="overview"),
    path("jobs/", page(jobs.index), name="jobs"),
    path("jobs/<int:job_id>/", page(jobs.show), name="job"),
    path("login/", answered(session.login), name="login"),
    path("logout/", answered(session.logout), name="logout"),
]
