"""A queue's limit while workers die and are stopped; the long run is `bench.limits`."""

import pytest

from tests.faults.pressure import Pressure
from tests.runtime.programs import House


@pytest.mark.requirement("L6", "N16", "L30")
def test_under_kills_late_ends_and_reaps_a_limit_is_never_exceeded_and_a_line_keeps_its_order(
    house: House,
) -> None:
    """Acceptance: never one valid lease too many, full use afterwards, the exact order."""
    pressure = Pressure(house, workers=3, line=18)
    figures = pressure.run(blows=5, pause=0.5)
    assert max(figures["valid_leases"]) == figures["slots"] == 3
    assert max(figures["valid_leases_in_line"]) <= 1
    assert figures["order"] == list(range(18))
