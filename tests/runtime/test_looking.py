"""A real maintainer looks at the whole, beside what else it does."""

import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.store import histograms, samples
from shiftboss.queue.store.samples import Part
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House
from tests.waiting import wait_for


@pytest.mark.requirement("B8", "B9")
def test_a_maintainer_keeps_samples_of_all_parts_and_writes_histograms(house: House) -> None:
    tasks.nap.enqueue(1, seconds=0)
    maintainer = house.maintainer()
    wanted = {*map(str, Part), histograms.PART}
    wait_for(lambda: wanted <= set(run(samples.samples(authority=System()))), seconds=30)
    assert run(samples.samples(authority=System()))[Part.COUNTS].seen == [["default", "available", 1]]
    assert not maintainer.says("loop.failed")
