"""Acts on rolling restarts: permitted, with a reason, in the audit, one at a time."""

import pytest

from shiftboss import acts
from shiftboss.permissions import PERMISSIONS, Act
from shiftboss.queue.authority import Scoped
from shiftboss.queue.errors import (
    HostSilent,
    InvalidJob,
    NoSuchProgram,
    NoSuchRoll,
    NotAllowed,
    ReasonNeeded,
    RollRefused,
)
from shiftboss.queue.store import audit, rolls
from shiftboss.queue.store.audit import AuditRow
from shiftboss.queue.store.rolls import RollRow
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.store import making

pytestmark = [pytest.mark.requirement("B15", "L31"), pytest.mark.django_db]

WHO = "kim of the rolls"


@pytest.fixture(autouse=True)
def agent() -> int:
    """A host with two workers."""
    return making.a_host(programs=[{"name": f"worker-default-{n}", "pool": "default"} for n in (1, 2)])


def known() -> list[RollRow]:
    """All rolls."""
    return run(rolls.rolls(authority=making.SYSTEM))


def kept() -> list[AuditRow]:
    """What the audit keeps of this test: it is never emptied."""
    return [entry for entry in run(audit.entries(authority=making.SYSTEM)) if entry.actor_name == WHO]


def test_a_roll_is_begun_and_cancelled_and_both_are_in_the_audit() -> None:
    begun = acts.roll_pool("default", by=person(WHO), reason="new code", code_wanted="v2")
    [row] = known()
    assert (begun.roll_id, begun.items, begun.act) == (row.id, 2, Act.ROLL_POOL)
    assert (row.pool, row.reason, row.asked_by, row.code_wanted) == ("default", "new code", WHO, "v2")
    cancelled = acts.cancel_roll(row.id, by=person(WHO), reason="it leaks")
    assert (cancelled.roll_id, cancelled.before, cancelled.after) == (row.id, "running", "cancelled")
    second, first = kept()
    assert [(entry.act, entry.reason) for entry in (first, second)] == [
        ("roll_pool", "new code"),
        ("cancel_roll", "it leaks"),
    ]
    assert '"pool": "default"' in first.asked
    assert f'"roll_id": "{row.id}"' in first.after


def test_a_second_roll_is_refused_and_names_the_one_that_runs() -> None:
    first = acts.roll_pool(None, by=person(WHO), reason="r").roll_id
    with pytest.raises(RollRefused, match=f"rolling restart {first} runs") as refused:
        acts.roll_pool("default", by=person(WHO), reason="r")
    assert refused.value.roll_id == first
    acts.cancel_roll(first or 0, by=person(WHO), reason="r")
    with pytest.raises(RollRefused, match="has ended: it is cancelled"):
        acts.cancel_roll(first or 0, by=person(WHO), reason="r")
    assert len(kept()) == 2


def test_what_cannot_be_rolled_is_refused_and_not_kept() -> None:
    with pytest.raises(NoSuchProgram, match="no worker of the pool 'none' is up"):
        acts.roll_pool("none", by=person(WHO), reason="r")
    for name in ("a\nb", "x" * 201):
        with pytest.raises(InvalidJob, match="printable"):
            acts.roll_pool(name, by=person(WHO), reason="r")
    for number in (987654, 0, -1, 2**63):
        with pytest.raises(NoSuchRoll):
            acts.cancel_roll(number, by=person(WHO), reason="r")
    making.execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '1 minute'")
    with pytest.raises(HostSilent, match="web-1"):
        acts.roll_pool("default", by=person(WHO), reason="r")
    assert (known(), kept()) == ([], [])


def test_who_may_not_or_says_no_reason_rolls_nothing() -> None:
    lacking = person(WHO, may=set(PERMISSIONS.values()) - {"shiftboss.roll_pool"})
    with pytest.raises(NotAllowed, match="roll_pool"):
        acts.roll_pool("default", by=lacking, reason="r")
    with pytest.raises(NotAllowed, match="roll_pool"):
        acts.cancel_roll(1, by=lacking, reason="r")
    with pytest.raises(NotAllowed):
        acts.roll_pool("default", by=person(WHO, authority=Scoped(queues=["default"])), reason="r")
    with pytest.raises(ReasonNeeded):
        acts.roll_pool("default", by=person(WHO), reason=" ")
    assert (known(), kept()) == ([], [])


def test_a_request_that_comes_twice_begins_one_roll() -> None:
    request = a_request()
    first = acts.roll_pool("default", by=person(WHO), reason="r", request_id=request)
    again = acts.roll_pool("default", by=person(WHO), reason="r", request_id=request)
    assert (again.repeated, again.roll_id, again.items) == (True, first.roll_id, 2)
    assert len(known()) == 1
