"""Which acts a page offers: what the state machine lets an operator do to a job, and this person is permitted to.

An act on a job is a resource of it, `POST /jobs/7/reruns/`; `ACTS` lists them in the order of their buttons.
"""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from shiftboss import acts
from shiftboss.console.asking import Asking
from shiftboss.console.forms import DueForm, EditForm, PriorityForm, ReasonForm, RerunForm
from shiftboss.permissions import Act, Person
from shiftboss.queue.states import State
from shiftboss.queue.store.read import JobDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAct(Asking):
    """An act on a job. `minor`: it stands behind "More"."""

    form: type[ReasonForm] = ReasonForm
    minor: bool = False


ACTS = (
    JobAct(
        act=Act.REINSTATE,
        resource="reinstatements",
        question=_("Reinstate job %(job)s?"),
        effect=_("It becomes available again, with as many more attempts as its task has."),
        perform=acts.reinstate,
    ),
    JobAct(
        act=Act.RERUN,
        resource="reruns",
        question=_("Rerun job %(job)s?"),
        effect=_("The same task runs once more with the same arguments, as a new job."),
        perform=acts.rerun,
        form=RerunForm,
    ),
    JobAct(
        act=Act.EDIT,
        resource="edits",
        question=_("Run job %(job)s with other arguments?"),
        effect=_("A new job of the same task runs with them, linked to this one. This one stays as it is."),
        perform=acts.edit,
        form=EditForm,
        minor=True,
    ),
    JobAct(
        act=Act.REVEAL,
        resource="reveals",
        question=_("Reveal the arguments of job %(job)s?"),
        effect=_(
            "They are shown to you, until you log out or half an hour has passed. The audit keeps that you looked."
        ),
        perform=acts.reveal,
    ),
    JobAct(
        act=Act.EXPEDITE,
        resource="expeditions",
        question=_("Expedite job %(job)s?"),
        effect=_("It becomes available now, before it is due."),
        perform=acts.expedite,
    ),
    JobAct(
        act=Act.DISCARD,
        resource="discards",
        question=_("Discard job %(job)s?"),
        effect=_("It is given up for good. It stays in the history, from where it can be rerun."),
        perform=acts.discard,
    ),
    JobAct(
        act=Act.CANCEL,
        resource="cancellations",
        question=_("Cancel job %(job)s?"),
        effect=_("It will not run. It stays in the history, from where it can be rerun."),
        perform=acts.cancel,
    ),
    JobAct(
        act=Act.REPRIORITISE,
        resource="reprioritisations",
        question=_("Change the priority of job %(job)s?"),
        effect=_("Among jobs that are available, higher ones are claimed first."),
        perform=acts.reprioritise,
        form=PriorityForm,
        minor=True,
    ),
    JobAct(
        act=Act.RESCHEDULE,
        resource="reschedulings",
        question=_("Change when job %(job)s is due?"),
        effect=_("It is claimed no earlier."),
        perform=acts.reschedule,
        form=DueForm,
        minor=True,
    ),
    JobAct(
        act=Act.QUARANTINE,
        resource="quarantines",
        question=_("Quarantine job %(job)s?"),
        effect=_("It is held back until somebody reinstates it."),
        perform=acts.quarantine,
        minor=True,
    ),
)

ASKED_TO_END = _("Its handler is asked to end; the job runs until it does.")


def effect(of: JobAct, state: State) -> Promise:
    """What the act does to a job in this state."""
    return ASKED_TO_END if of.act is Act.CANCEL and state is State.RUNNING else of.effect


def offered(state: State, *, to: Person) -> list[JobAct]:
    """The acts that a job in this state is offered with."""
    legal = acts.legal(state)
    return [one for one in ACTS if one.act in legal and to.may(one.act)]


def _is_minor(one: JobAct, state: State) -> bool:
    # A quarantined job is discarded rather; cancelling it comes to the same.
    return one.minor or (one.act is Act.CANCEL and state is State.QUARANTINED)


def in_list(state: State, *, to: Person) -> list[JobAct]:
    """What each row of a list of this state offers."""
    return [one for one in offered(state, to=to) if not _is_minor(one, state)]


@dataclass(frozen=True, slots=True)
class Offers:
    """The acts that a job's page shows: as buttons, and behind "More"."""

    main: list[JobAct]
    more: list[JobAct]


def on_page(job: JobDetail, *, to: Person) -> Offers:
    """What the page of this job offers.

    The end of a job is asked for once, and a job that waits for the holder of its key cannot be expedited.
    """
    pointless = {Act.CANCEL} if job.state is State.RUNNING and job.cancel_requested_at else set()
    if job.follow_up:
        pointless.add(Act.EXPEDITE)
    found = [one for one in offered(job.state, to=to) if one.act not in pointless]
    return Offers(
        main=[one for one in found if not _is_minor(one, job.state)],
        more=[one for one in found if _is_minor(one, job.state)],
    )
