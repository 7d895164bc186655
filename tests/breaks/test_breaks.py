"""The breaks fit the source as it is, each guarantee has one, and the tool tells apart what is noticed or not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.breaks.__main__ import ROOT, try_all
from tests.breaks.trial import Break, breaks

PAGE = ROOT / "docs" / "reliability.md"
GUARANTEE = re.compile(r"^\*\*(G\d+)\*\*", re.MULTILINE)


@pytest.mark.requirement("L30")
@pytest.mark.parametrize("one", breaks(), ids=lambda one: f"{one.guarantee}: {one.name}")
def test_a_break_fits_the_source(one: Break) -> None:
    """When this fails, the source has moved on: say in breaks.toml what breaks it now."""
    assert one.misfit(ROOT) is None


@pytest.mark.requirement("L30")
def test_each_guarantee_has_a_break_and_each_break_a_guarantee() -> None:
    guarantees = GUARANTEE.findall(PAGE.read_text(encoding="utf-8"))
    assert guarantees == [f"G{number}" for number in range(1, len(guarantees) + 1)]
    assert {one.guarantee for one in breaks()} == set(guarantees)


ADDER = "def add(a, b):\n    return a + b\n"
TESTS = """\
from adder import add


def test_adds():
    assert add(1, 2) == 3


def test_looks_elsewhere():
    assert add(0, 0) == 0
"""


@pytest.mark.requirement("L30")
def test_what_is_noticed_is_told_from_what_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    source = tmp_path / "source"
    source.mkdir()
    (source / "adder.py").write_text(ADDER)
    (source / "test_adder.py").write_text(TESTS)

    def told(*some: Break) -> tuple[int, str]:
        answer = try_all(some, source=source, processes=1)
        assert (source / "adder.py").read_text() == ADDER
        return answer, capsys.readouterr().out

    noticed = Break("G1", "a difference", "adder.py", "a + b", "a - b", "test_adder.py::test_adds")
    survives = Break("G1", "zero", "adder.py", "a + b", "a - b", "test_adder.py::test_looks_elsewhere")
    gone = Break("G1", "a product", "adder.py", "a * b", "a - b", "test_adder.py::test_adds")
    no_code = Break("G1", "nothing", "adder.py", "a + b", "a +", "test_adder.py::test_adds")
    no_test = Break("G1", "no test", "adder.py", "a + b", "a - b", "test_adder.py::test_divides")
    answer, text = told(noticed)
    assert (answer, "0 not noticed" in text) == (0, True)
    answer, text = told(noticed, survives, gone, no_code, no_test)
    assert (answer, "4 not noticed" in text) == (1, True)
    for why in ("its test passes", "stands 0 times", "is no Python", "there is no test"):
        assert why in text
    (source / "adder.py").write_text(ADDER.replace("+", "-"))
    answer = try_all([replace(noticed, old="a - b", new="a + b")], source=source, processes=1)
    assert (answer, "have to be green first" in capsys.readouterr().out) == (1, True)
