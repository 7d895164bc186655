"""What passes between a worker and the record."""

from datetime import UTC, datetime

import pytest

from shiftboss.queue import contract, outcomes
from shiftboss.queue.contract import Claimed, Lease, Settlement

pytestmark = pytest.mark.requirement("L1")


def test_a_claimed_job_carries_its_lease() -> None:
    job = Claimed(7, 3, "default", "task", "{}", 0, datetime.now(UTC), 0, 0, False)
    assert job.lease == Lease(job_id=7, fence=3)


def test_answers_for_parts_of_a_batch_add_up() -> None:
    one, two, three, four = (Lease(job_id, 1) for job_id in (1, 2, 3, 4))
    whole = Settlement(settled={one}).add(Settlement(settled={two}, lost={three})).add(Settlement(busy={four}))
    assert whole == Settlement(settled={one, two}, lost={three}, busy={four})


def test_new_answers_share_nothing() -> None:
    first = Settlement()
    first.add(Settlement(settled={Lease(1, 1)}))
    assert Settlement() == Settlement(settled=set(), lost=set(), busy=set())


@pytest.mark.parametrize("name", ["Done", "Failed", "Released", "Quarantined", "Lost"])
def test_outcomes_cannot_be_changed(name: str) -> None:
    kind = getattr(outcomes, name)
    one = kind(**dict.fromkeys(kind.__dataclass_fields__))
    with pytest.raises(AttributeError):
        setattr(one, next(iter(kind.__dataclass_fields__)), "other")


@pytest.mark.parametrize("name", ["Lease", "Claimed", "Mark", "Heartbeat", "Registration", "WorkerStatus"])
def test_the_contract_is_immutable(name: str) -> None:
    kind = getattr(contract, name)
    names = getattr(kind, "_fields", None) or tuple(kind.__dataclass_fields__)
    one = kind(**dict.fromkeys(names))
    with pytest.raises(AttributeError):
        setattr(one, names[0], "other")
