"""How large a batch may be: halved until it gets through, and back to its size after that."""

import pytest

from shiftboss.queue.runtime.budget import Budget
from shiftboss.queue.runtime.intake import Intake

pytestmark = pytest.mark.requirement("R8", "L30")


def test_it_is_halved_with_each_failure_down_to_one_row_and_comes_back() -> None:
    budget = Budget(1000, 8000)
    sizes = []
    for _ in range(40):
        sizes.append((budget.rows, budget.characters))
        budget.failed()
    assert sizes[:4] == [(1000, 8000), (500, 4000), (250, 2000), (125, 1000)]
    assert (budget.rows, budget.characters) == (1, 0)
    for _ in range(20):
        budget.passed()
    assert (budget.rows, budget.characters) == (1000, 8000)
    budget.passed()
    assert budget.rows == 1000


def test_after_a_claim_whose_answer_was_late_less_is_claimed() -> None:
    intake = Intake(queues=["default"], poll_seconds=1.0, appetite=lambda: 600, rested=False)
    intake.tasks.add("t")
    intake.missed()
    intake.missed()
    assert intake.want == 256
    intake.claimed([], began=0.0, now=0.1)
    assert intake.want == 512
    intake.claimed([], began=0.0, now=0.1)
    assert intake.want == 600
