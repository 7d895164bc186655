"""The console's pages. `page` stands around every one that shows the record or changes it."""

from django.urls import path

from shiftboss.console import names as names  # makes names of hosts parts of addresses
from shiftboss.console import offers, program_acts
from shiftboss.console.csrf import checked
from shiftboss.console.errors import answered
from shiftboss.console.permissions import required
from shiftboss.console.signature import View
from shiftboss.console.views import (
    audit,
    backfills,
    hosts,
    job,
    jobacts,
    jobs,
    many,
    overview,
    programs,
    quarantine,
    queues,
    rolls,
    session,
    undoing,
    workers,
)
from shiftboss.permissions import VIEW, VIEW_AUDIT


def page(view: View, *, permission: str = VIEW) -> View:
    """A view for people who may see it, whose errors are answered with pages."""
    return answered(required(view, permission=permission))


urlpatterns = [
    path("", page(overview.show), name="overview"),
    path("jobs/", page(jobs.index), name="jobs"),
    path("jobs/reveals/", page(jobacts.RevealingInLists.as_view()), name="list-reveals"),
    path("jobs/<int:job_id>/", page(job.show), name="job"),
    *(
        path(f"jobs/<int:job_id>/{one.resource}/", page(jobacts.view_of(one)), name=one.resource)
        for one in offers.ACTS
    ),
    *(
        path(f"jobs/many/{one.resource}/", page(many.view_of(one)), name=f"many-{one.resource}")
        for one in many.ACTS
    ),
    path("quarantine/", page(quarantine.index), name="quarantine"),
    *(
        path(f"quarantine/{one.resource}/", page(quarantine.view_of(one)), name=f"held-{one.resource}")
        for one in quarantine.ACTS
    ),
    path("operations/<uuid:operation>/undoings/", page(undoing.Undoing.as_view()), name="undoings"),
    path("queues/", page(queues.index), name="queues"),
    path("queues/one/", page(queues.show), name="queue"),
    path("queues/cancellations/", page(queues.Cancelling.as_view()), name="queue-cancellations"),
    path("queues/pauses/", page(queues.Pausing.as_view()), name="pauses"),
    path("queues/resumptions/", page(queues.Resuming.as_view()), name="resumptions"),
    path("queues/limits/", page(queues.Limiting.as_view()), name="limits"),
    path("workers/", page(workers.index), name="workers"),
    path("workers/<int:worker_id>/", page(workers.show), name="worker"),
    *(
        path(f"workers/<int:worker_id>/{one.resource}/", page(workers.view_of(one)), name=f"worker-{one.resource}")
        for one in workers.ORDERS
    ),
    path("hosts/", page(hosts.index), name="hosts"),
    path("hosts/<name:host>/<name:program>/", page(hosts.show), name="program"),
    path("hosts/<name:host>/<name:program>/log/", page(programs.Log.as_view()), name="log"),
    *(
        path(
            f"hosts/<name:host>/<name:program>/{one.resource}/",
            page(programs.view_of(one)),
            name=f"program-{one.resource}",
        )
        for one in program_acts.ACTS
    ),
    path("hosts/<name:host>/pools/<name:pool>/scales/", page(programs.Scaling.as_view()), name="pool-scales"),
    path("commands/<int:command_id>/", page(hosts.command), name="command"),
    path("rolls/", page(rolls.index), name="rolls"),
    path("rolls/beginnings/", page(rolls.Beginning.as_view()), name="roll-beginnings"),
    path("rolls/<int:roll_id>/", page(rolls.show), name="roll"),
    path("rolls/<int:roll_id>/cancellations/", page(rolls.Cancelling.as_view()), name="roll-cancellations"),
    path("backfills/", page(backfills.index), name="backfills"),
    path("backfills/<int:backfill_id>/", page(backfills.show), name="backfill"),
    *(
        path(
            f"backfills/<int:backfill_id>/{one.resource}/",
            page(backfills.view_of(one)),
            name=f"backfill-{one.resource}",
        )
        for one in backfills.ACTS
    ),
    path("audit/", page(audit.index, permission=VIEW_AUDIT), name="audit"),
    path("login/", answered(checked(session.login)), name="login"),
    path("logout/", answered(checked(session.logout)), name="logout"),
]
