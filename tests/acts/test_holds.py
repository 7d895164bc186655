"""Letting programs go that are held back: by a person, with an entry of the audit, whoever watches the host."""

import json
from collections.abc import Callable

import pytest

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.permissions import PERMISSIONS, Act
from shiftboss.queue.authority import Scoped
from shiftboss.queue.errors import InvalidJob, NoSuchProgram, NotAllowed
from shiftboss.queue.store import audit, holds
from shiftboss.queue.store.audit import AuditRow
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.store import making

pytestmark = [pytest.mark.requirement("B2", "B15"), pytest.mark.django_db]

WHO = "kim of the held ones"


@pytest.fixture(autouse=True)
def hold_id() -> int:
    """A program that is held back."""
    fence = making.a_host(programs=[{"name": "web", "pool": None}], lease_seconds=3600.0)
    return making.a_hold(fence, step=3)


def held() -> HoldRow:
    """The one hold."""
    [row] = run(holds.holds(authority=making.SYSTEM))
    return row


def owed() -> int:
    """How many programs an agent owes something."""
    return len(run(holds.open_holds(authority=making.SYSTEM, host="web-1")))


def kept() -> list[AuditRow]:
    """What the audit keeps of it."""
    return [entry for entry in run(audit.entries(authority=making.SYSTEM)) if entry.actor_name == WHO]


def test_a_person_lets_a_program_go_also_where_nobody_hears_its_host(hold_id: int) -> None:
    making.execute("update shiftboss_host set stopped_at = now()")
    acted = acts.release_program("web-1", "web", by=person(WHO), reason="the port is free")
    assert (acted.act, acted.command_id) == (Act.RELEASE_PROGRAM, None)
    assert (held().released_as, held().released_by, owed()) == ("release", WHO, 1)
    [entry] = kept()
    assert (entry.act, entry.reason) == ("release_program", "the port is free")
    assert json.loads(entry.asked) == {"host": "web-1", "program": "web"}
    assert (json.loads(entry.before)["step"], json.loads(entry.after)) == (3, {"hold_id": str(hold_id)})
    with pytest.raises(NoSuchProgram, match="web on web-1 is not held back"):
        acts.release_program("web-1", "web", by=person(WHO))


def test_a_request_that_comes_twice_lets_it_go_once() -> None:
    request = a_request()
    first = acts.release_program("web-1", "web", by=person(WHO), request_id=request)
    again = acts.release_program("web-1", "web", by=person(WHO), request_id=request)
    assert (first.repeated, again.repeated, len(kept())) == (False, True, 1)


@pytest.mark.parametrize(
    ("do", "how", "left"),
    [
        (acts.start_program, "start", 1),
        (acts.restart_program, "start", 1),
        (acts.drain_program, "stop", 0),
        (acts.stop_program, "stop", 0),
    ],
)
def test_who_starts_or_stops_a_program_ends_its_hold(
    do: Callable[..., Acted], how: str, left: int, hold_id: int
) -> None:
    do("web-1", "web", by=person(WHO), reason="r")
    assert (held().released_as, held().released_by, owed()) == (how, WHO, left)
    [entry] = kept()
    assert json.loads(entry.after)["hold_id"] == str(hold_id)


def test_who_looks_at_its_log_leaves_it_held() -> None:
    acts.tail_program("web-1", "web", by=person(WHO))
    assert held().released_as is None


def test_who_may_not_lets_nothing_go() -> None:
    lacking = person(WHO, may=set(PERMISSIONS.values()) - {PERMISSIONS[Act.RELEASE_PROGRAM]})
    with pytest.raises(NotAllowed, match="release_program"):
        acts.release_program("web-1", "web", by=lacking)
    with pytest.raises(NotAllowed):
        acts.release_program("web-1", "web", by=person(WHO, authority=Scoped(queues=["default"])))
    with pytest.raises(InvalidJob, match="printable"):
        acts.release_program("web-1", "a\nb", by=person(WHO))
    assert (held().released_as, kept()) == (None, [])
