"""Every command is in the documentation, has help with examples, and every example is one that can be given."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftboss.cli import parser
from shiftboss.cli.acting import FINAL_ACTS
from shiftboss.permissions import NEED_REASON
from tests.programs.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def parsers(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands and groups below one, and itself."""
    yield of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


ALL = {one.prog: one for one in parsers(parser())}
COMMANDS = {name: one for name, one in ALL.items() if one.get_default("command")}


def given_in(text: str) -> list[str]:
    """The command lines in a text, each up to what a shell would do with its output."""
    found = re.findall(r"^ *(?:\$ )?((?:\w+=\S+ )?shiftboss [a-z].*)$", text, flags=re.MULTILINE)
    return [re.split(r" \||  +", line)[0] for line in found]


def accepted(line: str) -> bool:
    """Whether the words of a command line are understood."""
    words = shlex.split(re.sub(r'"\$\([^)]*\)"', "2026-12-01T06:00:00Z", line))
    try:
        parser().parse_args(words[words.index("shiftboss") + 1 :])
    except SystemExit:
        return False
    return True


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_its_place_in_the_documentation_with_an_example(name: str) -> None:
    assert re.search(rf"^##+ `{name}`$", PAGE, flags=re.MULTILINE)
    assert f"    $ {name}" in PAGE


@pytest.mark.parametrize("name", ALL)
def test_each_command_has_help_whose_examples_can_be_given(sh: Shell, name: str) -> None:
    ran = sh(*name.split()[1:], "--help")
    assert (ran.code, ran.err) == (0, "")
    examples = given_in(ALL[name].epilog or "")
    assert any(line.startswith(name) for line in examples)
    assert [line for line in examples if not accepted(line)] == []


def test_each_example_of_the_documentation_can_be_given() -> None:
    lines = [line for text in ("cli.md", "operating.md") for line in given_in((ROOT / "docs" / text).read_text())]
    assert len(lines) > len(COMMANDS)
    assert [line for line in lines if not accepted(line)] == []


def test_the_documentation_names_the_acts_that_want_a_reason_and_those_that_ask_first() -> None:
    said = " ".join(PAGE.split())
    [reasons] = re.findall(r'`--reason "…"`. Needed for (.*?)\.', said)
    assert set(re.findall(r"`(\w+)`", reasons)) == set(NEED_REASON)
    [asks] = re.findall(r"\*Is it meant\?\* (.*?) show what", said)
    assert set(re.findall(r"`(\w+)`", asks)) == set(FINAL_ACTS)
