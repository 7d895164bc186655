"""The list of what goes wrong with supervisors names tests that are there, and says of the rest what it lacks."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.breaks.trial import exists

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = tomllib.loads(Path(__file__).with_name("scenarios.toml").read_text(encoding="utf-8"))["scenario"]


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one["id"])
def test_what_a_scenario_names_is_there(one: dict[str, Any]) -> None:
    assert set(one) <= {"id", "what", "tests", "note", "open"}
    assert [test for test in one.get("tests", ()) if not exists(test, ROOT)] == []
    assert one.get("tests") or one.get("open"), "no test holds it, and it does not say why"


def test_each_scenario_is_listed_once() -> None:
    names = [one["id"] for one in SCENARIOS]
    assert len(names) == len(set(names))
