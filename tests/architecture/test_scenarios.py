"""The lists of what goes wrong elsewhere name tests that are there, and say of the rest what it lacks."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.breaks.trial import exists

ROOT = Path(__file__).resolve().parents[2]
LISTS = {
    room: tomllib.loads((ROOT / "tests" / room / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]
    for room in ("console", "programs")
}
"""Of consoles and of supervisors. Those of queues name guarantees too, and have a test of their own."""


@pytest.mark.parametrize("one", [one for listed in LISTS.values() for one in listed], ids=lambda one: one["id"])
def test_what_a_scenario_names_is_there(one: dict[str, Any]) -> None:
    assert set(one) <= {"id", "what", "tests", "note", "open"}
    assert [test for test in one.get("tests", ()) if not exists(test, ROOT)] == []
    assert one.get("tests") or one.get("open"), "no test holds it, and it does not say why"


@pytest.mark.parametrize("room", LISTS)
def test_each_scenario_is_listed_once(room: str) -> None:
    names = [one["id"] for one in LISTS[room]]
    assert len(names) == len(set(names))
