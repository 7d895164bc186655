"""The whole as one person sees it: all of it, or the queues that their scope holds as a whole.

Every page and every answer of the API takes the whole from here.
"""

from dataclasses import replace

from shiftboss.console import whole
from shiftboss.console.whole import Whole
from shiftboss.permissions import Person
from shiftboss.queue.authority import queues_of


def seen_by(person: Person) -> Whole:
    """What is known of the whole now, as far as this person sees it: at most one statement."""
    return narrowed(whole.whole(), _queues_of(person))


def looked_by(person: Person) -> Whole:
    """The same, after a look of one's own where no maintainer looks."""
    return narrowed(whole.looked(), _queues_of(person))


def last_known_to(person: Person) -> Whole | None:
    """What this process has read before of what this person sees, without asking the database."""
    seen = whole.last_known()
    return None if seen is None else narrowed(seen, _queues_of(person))


def _queues_of(person: Person) -> frozenset[str] | None:
    return queues_of(person.authority, "the whole")


def narrowed(seen: Whole, queues: frozenset[str] | None) -> Whole:
    """Of these queues all that is told by queue; all workers, as they are counted; no hosts."""
    if queues is None:
        return seen
    return replace(
        seen,
        within=queues,
        counts=[count for count in seen.counts if count.queue in queues],
        finished=None,
        workers=replace(
            seen.workers, queues={name: served for name, served in seen.workers.queues.items() if name in queues}
        ),
        stuck_in={name: jobs for name, jobs in seen.stuck_in.items() if name in queues},
        longest_stuck=[stuck for stuck in seen.longest_stuck if stuck.queue in queues],
        quarantine=[held for held in seen.quarantine if held.queue in queues],
        flows={name: flow for name, flow in seen.flows.items() if name in queues},
        rates=[rate for rate in seen.rates if rate.queue in queues],
        hosts=[],
        holds=[],
        pauses=[pause for pause in seen.pauses if pause.queue in queues],
    )
