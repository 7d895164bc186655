"""The quarantine, arranged by its reasons. Plain functions over what was read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from shiftboss.console.figures import Tally
from shiftboss.console.filters import BadFilter, JobFilter
from shiftboss.console.query import Term, Text, of
from shiftboss.console.whole import Whole
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store.many import LOOKED, Group, Held
from shiftboss.queue.store.samples import Part

HEADLINES: dict[str, Promise] = {
    QuarantineReason.FAILURES_EXHAUSTED: gettext_lazy("failed too often"),
    QuarantineReason.LOSSES_EXHAUSTED: gettext_lazy("lost to the death of a worker too often"),
    QuarantineReason.POISON: gettext_lazy("death of the process each time, whatever ran beside it"),
    QuarantineReason.DELIVERIES_EXHAUSTED: gettext_lazy("delivered too often"),
    QuarantineReason.UNKNOWN_TASK: gettext_lazy("a task that no live worker knows"),
    QuarantineReason.INVALID_ARGUMENTS: gettext_lazy("arguments that do not fit the task"),
    QuarantineReason.OPERATOR: gettext_lazy("held back by an operator"),
}
"""Why jobs are held, however many they are."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Jobs of one reason, task and error: the group that was read, its list, and the query of acts on it."""

    group: Group
    list: str
    query: str


@dataclass(frozen=True, slots=True)
class Reason:
    """All jobs of one reason: how many, first and last held, how many within the last hour, and by task and error.

    `sampled`: they were counted by the maintainer some time ago. Else they were counted just now; `capped` there,
    there are at least so many. `fresh` is None where nobody has counted. `is_whole`: its groups are of all its
    jobs, and not of the newest ones.
    """

    reason: QuarantineReason
    jobs: int
    capped: bool
    sampled: bool
    is_whole: bool
    fresh: int | None
    first: datetime
    last: datetime
    kinds: list[Kind]
    more_kinds: int
    list: str
    query: str

    @property
    def tally(self) -> Tally:
        """Its jobs as counts are written."""
        return Tally(State.QUARANTINED, self.jobs, self.capped)

    @property
    def headline(self) -> Promise:
        """Why they are held."""
        return HEADLINES[self.reason]


def reasons(whole: Whole, groups: Iterable[Group]) -> list[Reason]:
    """The reasons for which jobs are held now, the one with the most jobs first."""
    by_reason: dict[str, list[Group]] = {}
    for group in groups:
        by_reason.setdefault(group.reason, []).append(group)
    found = [_reason(QuarantineReason(name), of_it, whole) for name, of_it in by_reason.items()]
    return sorted(found, key=lambda one: -one.jobs)


def _reason(reason: QuarantineReason, groups: list[Group], whole: Whole) -> Reason:
    some = groups[0]
    sampled = [one for one in whole.quarantine if one.reason == reason]
    exact = some.of_jobs < LOOKED and whole.within is None
    counted = sum(one.jobs for one in sampled)
    is_counted = Part.QUARANTINE in whole.ages and whole.tells_of_queues
    return Reason(
        reason=reason,
        jobs=some.of_jobs if exact else max(counted, some.of_jobs),
        capped=not exact and counted <= some.of_jobs,
        sampled=not exact and counted > some.of_jobs,
        is_whole=exact,
        fresh=sum(one.fresh for one in sampled) if is_counted else None,
        first=min([some.of_first, *(one.first for one in sampled)]) if not exact else some.of_first,
        last=max([some.of_last, *(one.last for one in sampled)]) if not exact else some.of_last,
        kinds=[_kind(group) for group in groups],
        more_kinds=some.of_groups - len(groups),
        list=_list(Held(reason=reason)),
        query=query(Held(reason=reason)),
    )


def _kind(group: Group) -> Kind:
    held = Held(reason=QuarantineReason(group.reason), task=group.task, fingerprint=group.fingerprint or "")
    return Kind(group, _list(held), query(held))


def _list(held: Held) -> str:
    terms = [Term(name="reason", values=(Text((str(held.reason),)),))]
    if held.task is not None:
        terms.append(Term(name="task", values=(Text((held.task,)),)))
    return JobFilter(states=frozenset({State.QUARANTINED}), asked=of(terms)).query


def query(held: Held) -> str:
    """These jobs as the query of an address."""
    return "?" + urlencode({name: value for name, value in held.params().items() if value is not None})


def read(given: QueryDict | Mapping[str, str]) -> Held:
    """The jobs that an address means. Raises BadFilter."""
    try:
        reason = QuarantineReason(given.get("reason", ""))
    except ValueError as problem:
        raise BadFilter(str(problem)) from None
    task, fingerprint = given.get("task") or None, given.get("fingerprint")
    for text in (task, fingerprint):
        if text is not None and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
            raise BadFilter("the record holds no such name")
    return Held(reason=reason, task=task, fingerprint=fingerprint)
