"""What an act would do to jobs that somebody has chosen, before it is done. Plain functions over what was read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from shiftboss import acts
from shiftboss.console import words
from shiftboss.console.text import number
from shiftboss.permissions import Act
from shiftboss.queue.jobs import Unchanged, Why
from shiftboss.queue.states import State
from shiftboss.queue.store.many import Standing

LISTED = 20
"""Chosen jobs that are listed one by one."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What would happen: by state how many change and how; how many do not, and why; and the first jobs.

    Each line of `will` and `will_not` is a number of jobs and a sentence about them. Each of `listed` is a job,
    and why it would be left as it is, if it would.
    """

    jobs: int
    will: list[tuple[int, str]]
    will_not: list[tuple[int, str]]
    listed: list[tuple[Standing, str | None]]

    @property
    def changing(self) -> int:
        """How many would change."""
        return sum(jobs for jobs, _ in self.will)

    @property
    def unlisted(self) -> int:
        """Jobs that are chosen but not listed."""
        return self.jobs - len(self.listed)


def foresee(act: Act, standings: Sequence[Standing]) -> Foreseen:
    """What the act would do to these jobs as they stand now."""
    will: dict[State, int] = {}
    will_not: dict[str, int] = {}
    listed: list[tuple[Standing, str | None]] = []
    for one in standings:
        left = _left(act, one)
        if left is None:
            assert one.state
            will[one.state] = will.get(one.state, 0) + 1
        else:
            will_not[left] = will_not.get(left, 0) + 1
        if len(listed) < LISTED:
            listed.append((one, left))
    return Foreseen(
        len(standings),
        [(will[state], _effect(act, state, will[state])) for state in State if state in will],
        [(jobs, sentence) for sentence, jobs in will_not.items()],
        listed,
    )


def left(one: Unchanged) -> str:
    """Why a job was left as it is, as the end of a sentence that begins with the job."""
    match one.why:
        case Why.MISSING:
            return _("there is no such job")
        case Why.KEY_HELD:
            return _("its key is held by job %(holder)s") % {"holder": one.holder}
        case Why.BUSY:
            return _("somebody else has it in hand")
    return _("it is %(state)s") % {"state": words.spoken(words.STATES, str(one.state))}


def _left(act: Act, one: Standing) -> str | None:
    if one.state is None:
        return left(Unchanged(one.id, Why.MISSING))
    if act not in acts.legal(one.state):
        return left(Unchanged(one.id, Why.STATE, one.state))
    waits_for_key = act in (Act.REINSTATE, Act.RERUN) or (act is Act.EXPEDITE and one.follow_up)
    if waits_for_key and one.holder is not None:
        return left(Unchanged(one.id, Why.KEY_HELD, one.state, one.holder))
    return None


def _effect(act: Act, state: State, jobs: int) -> str:
    said = {"state": words.spoken(words.STATES, state)}
    match act:
        case Act.CANCEL if state is State.RUNNING:
            text = ngettext(
                "running: its handler is asked to end", "running: their handlers are asked to end", jobs
            )
        case Act.CANCEL:
            text = ngettext("%(state)s: it will not run", "%(state)s: they will not run", jobs)
        case Act.EXPEDITE:
            text = ngettext("%(state)s: it is available at once", "%(state)s: they are available at once", jobs)
        case Act.RERUN:
            text = ngettext(
                "%(state)s: it runs once more, as a new job", "%(state)s: they run once more, as new jobs", jobs
            )
        case Act.REINSTATE:
            text = ngettext(
                "%(state)s: it becomes available again, with as many more attempts as its task has",
                "%(state)s: they become available again, with as many more attempts as their tasks have",
                jobs,
            )
        case Act.DISCARD:
            text = ngettext("%(state)s: it is given up for good", "%(state)s: they are given up for good", jobs)
        case _:
            text = ngettext(
                "%(state)s: it is held back until somebody reinstates it",
                "%(state)s: they are held back until somebody reinstates them",
                jobs,
            )
    return text % said


def question(act: Act, jobs: int) -> str:
    """What is asked before the act."""
    match act:
        case Act.CANCEL:
            text = ngettext("Cancel %(n)s job?", "Cancel %(n)s jobs?", jobs)
        case Act.EXPEDITE:
            text = ngettext("Expedite %(n)s job?", "Expedite %(n)s jobs?", jobs)
        case Act.RERUN:
            text = ngettext("Rerun %(n)s job?", "Rerun %(n)s jobs?", jobs)
        case Act.REINSTATE:
            text = ngettext("Reinstate %(n)s job?", "Reinstate %(n)s jobs?", jobs)
        case Act.DISCARD:
            text = ngettext("Discard %(n)s job?", "Discard %(n)s jobs?", jobs)
        case _:
            text = ngettext("Quarantine %(n)s job?", "Quarantine %(n)s jobs?", jobs)
    return text % {"n": number(jobs)}


def done(act: Act, jobs: int) -> str:
    """What was done."""
    match act:
        case Act.CANCEL:
            text = ngettext("%(n)s job was cancelled.", "%(n)s jobs were cancelled.", jobs)
        case Act.EXPEDITE:
            text = ngettext("%(n)s job was expedited.", "%(n)s jobs were expedited.", jobs)
        case Act.RERUN:
            text = ngettext("%(n)s job runs again.", "%(n)s jobs run again.", jobs)
        case Act.REINSTATE:
            text = ngettext("%(n)s job was reinstated.", "%(n)s jobs were reinstated.", jobs)
        case Act.DISCARD:
            text = ngettext("%(n)s job was discarded.", "%(n)s jobs were discarded.", jobs)
        case _:
            text = ngettext("%(n)s job is held back.", "%(n)s jobs are held back.", jobs)
    return text % {"n": number(jobs)}


def undoing(act: Act) -> str:
    """Whether what the act does can be undone, and what there is to do where it cannot."""
    match act:
        case Act.REINSTATE:
            return _("For ten minutes this can be undone, for the jobs that no worker has claimed by then.")
        case Act.QUARANTINE:
            return _("For ten minutes this can be undone.")
        case Act.CANCEL | Act.DISCARD:
            return _("This cannot be undone. The jobs stay in the history, from where they can be rerun.")
    return _("This cannot be undone.")


def offered(states: Iterable[State]) -> set[Act]:
    """The acts on many jobs that fit one of these states."""
    return {act for state in states for act in acts.legal(state)} & set(acts.ON_MANY)
