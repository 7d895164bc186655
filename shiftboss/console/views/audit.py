"""The audit: who did what, when and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from shiftboss.console import audits, filters, live, words
from shiftboss.console.filters import BadFilter
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.permissions import Act, Via
from shiftboss.queue.authority import System
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run

MAX_ACTOR = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the list is narrowed to, as its address says."""

    job: int | None = None
    queue: str | None = None
    act: str | None = None
    via: str | None = None
    by: str | None = None

    @property
    def is_walked(self) -> bool:
        """Whether it is narrowed by something that no index knows."""
        return any((self.act, self.via, self.by))

    def query(self, before: int | None = None) -> str:
        """It as the query of an address; the page that lies before an act."""
        named = {
            "job": self.job,
            "queue": self.queue,
            "act": self.act,
            "via": self.via,
            "by": self.by,
            "before": before,
        }
        said = {name: value for name, value in named.items() if value is not None}
        return f"?{urlencode(said)}" if said else ""


def index(request: HttpRequest) -> HttpResponse:
    """Acts, the newest first, a page at a time, narrowed to what the address names. Raises BadFilter."""
    wanted, before_id = _read(request.GET), filters.id_of(request.GET, "before")
    person = person_of(request)
    with bounded():
        rows = run(
            audit.entries(
                authority=person.authority,
                reader=person.as_actor,
                job_id=wanted.job,
                queue=wanted.queue,
                act=wanted.act,
                via=wanted.via,
                actor=wanted.by,
                before_id=before_id,
                limit=audit.PAGE + 1,
            )
        )
        more = len(rows) > audit.PAGE
        reached = None
        if (wanted.is_walked or person.authority != System()) and not more:
            reached = run(
                audit.reach(authority=person.authority, job_id=wanted.job, queue=wanted.queue, before_id=before_id)
            )
    shown = rows[: audit.PAGE]
    older = shown[-1].id if more else reached[0] if reached else None
    context = {
        "lines": audits.lines(shown, by=person),
        "wanted": wanted,
        "before_id": before_id,
        "older": wanted.query(older) if older is not None else None,
        "reached_at": reached[1] if reached else None,
        "reach": audit.REACH,
        "acts": [(str(act), words.spoken(words.ACTS, act)) for act in Act],
        "doors": [(str(via), words.spoken(words.VIAS, via)) for via in Via],
    }
    return live.answer(request, "audit", context)


def _read(query: Mapping[str, str]) -> Wanted:
    by = query.get("by") or None
    if by is not None and (len(by) > MAX_ACTOR or not by.isprintable()):
        raise BadFilter(f"by is a part of a name, of at most {MAX_ACTOR} printable characters")
    return Wanted(
        job=filters.id_of(query, "job"),
        queue=filters.queue_of(query) if query.get("queue") else None,
        act=_one_of(query, "act", Act),
        via=_one_of(query, "via", Via),
        by=by,
    )


def _one_of(query: Mapping[str, str], name: str, known: type[Act] | type[Via]) -> str | None:
    word = query.get(name) or None
    if word is not None and word not in tuple(known):
        raise BadFilter(f"{name} is one of {', '.join(known)}")
    return word
