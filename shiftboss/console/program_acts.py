"""What may be asked of a program of a host, and how it is asked for.

Each is a resource of the program, `POST /hosts/web-1/web/restarts/`. `ACTS` lists them in the order of their
buttons.
"""

from django.utils.translation import gettext_lazy as _

from shiftboss import acts
from shiftboss.console.asking import Asking
from shiftboss.console.hosts import DOWN, UNTOUCHABLE, Seat
from shiftboss.permissions import Act, Person
from shiftboss.queue.store.hosts import HostRow

ACTS = (
    Asking(
        act=Act.RELEASE_PROGRAM,
        resource="releases",
        question=_("Release %(program)s on %(host)s?"),
        effect=_(
            "It is held back because it crashed in a loop. The agent of the host starts it at once; should it go"
            " on crashing, it is held back again."
        ),
        perform=acts.release_program,
    ),
    Asking(
        act=Act.START_PROGRAM,
        resource="starts",
        question=_("Start %(program)s on %(host)s?"),
        effect=_("The agent of the host starts it, and says whether it stays up."),
        perform=acts.start_program,
    ),
    Asking(
        act=Act.RESTART_PROGRAM,
        resource="restarts",
        question=_("Restart %(program)s on %(host)s?"),
        effect=_(
            "It is stopped in order and started again. A worker finishes what it runs within its time to drain;"
            " what is left then is given back."
        ),
        perform=acts.restart_program,
    ),
    Asking(
        act=Act.DRAIN_PROGRAM,
        resource="drains",
        question=_("Drain %(program)s on %(host)s?"),
        effect=_(
            "It is stopped in order and stays down until somebody starts it. A worker finishes what it runs within"
            " its time to drain; what is left then is given back."
        ),
        perform=acts.drain_program,
    ),
    Asking(
        act=Act.STOP_PROGRAM,
        resource="stops",
        question=_("Stop %(program)s on %(host)s now?"),
        effect=_(
            "It stays down until somebody starts it. A worker is cut off in what it runs and gives it back, with"
            " no attempt lost."
        ),
        perform=acts.stop_program,
    ),
    Asking(
        act=Act.KILL_PROGRAM,
        resource="kills",
        question=_("Kill %(program)s on %(host)s?"),
        effect=_(
            "It was asked to stop and has not ended yet. It is ended at once, with all that it has started."
            " Nothing is given back: what a worker ran comes back once its leases are over, and has lost that run."
        ),
        perform=acts.kill_program,
    ),
)

WHILE_UP = frozenset({Act.RESTART_PROGRAM, Act.DRAIN_PROGRAM, Act.STOP_PROGRAM})


def offered(seat: Seat, host: HostRow, *, to: Person) -> list[Asking]:
    """What this person may ask of a program as it stands. Of a host that nobody hears nothing can be asked."""
    possible: set[Act] = set()
    if host.alive and seat.state in DOWN:
        possible.add(Act.START_PROGRAM)
    elif host.alive and seat.name not in UNTOUCHABLE:
        possible |= WHILE_UP | ({Act.KILL_PROGRAM} if seat.state == "STOPPING" else set())
    if seat.held_until is not None:
        possible.add(Act.RELEASE_PROGRAM)  # also of a host that is silent: its next agent starts it
    return [one for one in ACTS if one.act in possible and to.may(one.act)]
