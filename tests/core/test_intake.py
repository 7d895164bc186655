"""A keeper's knowledge of configurations, and when it claims for tasks of one kind."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from shiftboss.queue.contract import Claimed
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.intake import Intake
from shiftboss.queue.runtime.ports import QueueClient
from shiftboss.queue.runtime.revisions import Revisions

CONFIG = TaskConfig(task="tasks.mail", isolation="process", timeout_seconds=3.0)


class Client:
    """Knows one revision; the first question fails."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    async def revisions(self, revisions: Sequence[int]) -> dict[int, str]:
        """As the record answers."""
        self.asked.append(list(revisions))
        if len(self.asked) == 1:
            raise StoreUnavailable("away")
        return {number: CONFIG.to_json() for number in revisions if number == CONFIG.revision}


@pytest.mark.requirement("L15", "L9")
def test_a_configuration_is_read_once_and_asked_for_again_where_the_record_was_away_or_lacks_it() -> None:
    client = Client()
    known = Revisions(cast(QueueClient, client))

    async def read(*numbers: int | None) -> None:
        await known.read(numbers)

    with pytest.raises(StoreUnavailable):
        asyncio.run(read(CONFIG.revision, None))
    assert known.get(CONFIG.revision) is None
    for _ in range(2):
        asyncio.run(read(None, CONFIG.revision, CONFIG.revision))
    assert known.get(CONFIG.revision) == CONFIG
    asyncio.run(read(7, CONFIG.revision))
    assert known.get(7) is None
    assert known.get(None) is None
    assert client.asked == [[CONFIG.revision], [CONFIG.revision], [7]]


def claimed() -> list[Claimed]:
    """What a claim brought."""
    return [Claimed(1, 1, "default", "task", "{}", 0, datetime.now(UTC), 0, 0, False)]


@pytest.mark.requirement("B13")
def test_who_serves_few_tasks_among_many_rests_after_a_claim_in_vain_and_others_do_not() -> None:
    def intake(**how: Any) -> Intake:
        return Intake(queues=["default"], poll_seconds=1.0, appetite=lambda: 2, **how)

    plain, rested = intake(rested=False), intake(rested=True)
    for one in (plain, rested):
        assert one.want == 0  # nothing is known that it could claim
        one.tasks.add("task")
        assert one.want == 2
        one.claimed(claimed(), began=9.0, now=10.0)
        assert one.open_queues(10.0) == ["default"]
        one.claimed([], began=9.0, now=10.0)
    assert plain.open_queues(10.0) == ["default"]
    assert (rested.open_queues(29.9), rested.open_queues(30.0)) == ([], ["default"])
    assert rested.next_try() == 30.0
