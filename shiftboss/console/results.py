"""What an act on many jobs has just done, for the next page of the person who did it."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from shiftboss.acts import UNDOES, Many, Swept
from shiftboss.console import addresses, choosing
from shiftboss.console.people import person_of
from shiftboss.console.text import number
from shiftboss.permissions import Act
from shiftboss.queue.jobs import Unchanged, Why
from shiftboss.queue.states import State

_KEY = "shiftboss.result"

NAMED = 10
"""Jobs that a result names one by one."""


def keep_many(request: HttpRequest, done: Many) -> None:
    """Keep the result of an act on chosen jobs."""
    requested = done.after.get(State.RUNNING, 0) if done.act is Act.CANCEL else 0
    left = [[one.id, str(one.why), one.state and str(one.state), one.holder] for one in done.left[:NAMED]]
    _keep(request, done.act, done.operation, len(done.changed) - requested, requested, len(done.left), left)
    request.session[_KEY]["new"] = list(done.new_jobs.values())[:NAMED]


def keep_swept(request: HttpRequest, act: Act, swept: Swept) -> None:
    """Keep the result of a bulk act."""
    _keep(request, act, swept.operation if swept.changed else None, swept.ended, swept.requested, swept.left, [])


def keep_repeated(request: HttpRequest, act: Act, operation: UUID, jobs: int) -> None:
    """Keep that a bulk act had been done already when its form was sent again."""
    _keep(request, act, operation, jobs, 0, 0, [])


def _keep(
    request: HttpRequest,
    act: Act,
    operation: UUID | None,
    changed: int,
    requested: int,
    left: int,
    named: list[Any],
) -> None:
    request.session[_KEY] = {
        "act": str(act),
        "operation": operation and str(operation),
        "changed": changed,
        "requested": requested,
        "left": left,
        "named": named,
    }


def take(request: HttpRequest) -> SafeString | None:
    """The result that was kept, once."""
    kept = request.session.pop(_KEY, None)
    return _sentences(request, kept) if kept else None


def _sentences(request: HttpRequest, kept: dict[str, Any]) -> SafeString:
    act, said = Act(kept["act"]), []
    if kept["changed"]:
        said.append(format_html("{}", choosing.done(act, kept["changed"])))
    if kept["requested"]:
        requested = ngettext(
            "%(n)s job runs; its end has been requested.",
            "%(n)s jobs run; their end has been requested.",
            kept["requested"],
        )
        said.append(format_html("{}", requested % {"n": number(kept["requested"])}))
    if not said:
        said.append(format_html("{}", _("No job was changed.")))
    if new := kept.get("new"):
        links = format_html_join(", ", "{}", ((_job(request, job_id),) for job_id in new))
        more = " …" if kept["changed"] > len(new) else ""
        said.append(format_html(_("New: {jobs}{more}"), jobs=links, more=more))
    if kept["left"]:
        said.append(_left(request, kept))
    if kept["operation"] and act in UNDOES and person_of(request).may(UNDOES[act]):
        address = addresses.of(request, "undoings", operation=kept["operation"])
        said.append(format_html('<a class="button" href="{}" data-dialog>{}</a>', address, _("Undo")))
    return format_html_join(" ", "{}", ((sentence,) for sentence in said))


def _left(request: HttpRequest, kept: dict[str, Any]) -> SafeString:
    text = ngettext("%(n)s job was left as it is", "%(n)s jobs were left as they are", kept["left"])
    text %= {"n": number(kept["left"])}
    if not kept["named"]:
        return format_html(
            _("{text}: it had moved on, its key is held, or somebody else had it in hand."), text=text
        )
    named = format_html_join(
        "; ",
        "{}: {}",
        (
            (
                _job(request, job_id),
                choosing.left(Unchanged(job_id, Why(why), None if state is None else State(state), holder)),
            )
            for job_id, why, state, holder in kept["named"]
        ),
    )
    return format_html("{}: {}{}", text, named, " …" if kept["left"] > len(kept["named"]) else ".")


def _job(request: HttpRequest, job_id: int) -> SafeString:
    return format_html('<a href="{}">{}</a>', addresses.of(request, "job", job_id=job_id), str(job_id))
