"""The public names and the reference are the same set, in both directions. The page is read as a reader does."""

import ast
import builtins
import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from enum import EnumMeta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import shiftboss
from shiftboss.compat import Task
from shiftboss.queue.tasks import ShiftbossTask

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
TASKS = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
MODULES = re.findall(r"^## `(.+)`$", REFERENCE, re.MULTILINE)

pytestmark = pytest.mark.requirement("R11")


class Entry(NamedTuple):
    """A name as the page tells of it."""

    module: str
    name: str
    head: str
    promise: str
    members: dict[str, str]
    example: str

    @property
    def thing(self) -> Any:
        """What the package has under this name."""
        return getattr(import_module(self.module), self.name)


def entries() -> list[Entry]:
    """All names of the page."""
    found = []
    for title, body in re.findall(r"^### `([^`\n]+)`\n(.*?)(?=^##|\Z)", REFERENCE, re.MULTILINE | re.DOTALL):
        module, _, name = title.rpartition(".")
        told, _, example = body.partition("For example:")
        head, promise = re.fullmatch(r"\s*```python\n(.*?)\n```\n(.*)", told, re.DOTALL).groups()
        lines = re.findall(r"^- \*\*`(.+)`\*\*$", promise, re.MULTILINE)
        members = {re.match(r"(?:async )?(\w+)", line)[1]: line for line in lines}
        members |= dict(re.findall(rf"^- `{name}\.(\w+)` = `(.+)`$", promise, re.MULTILINE))
        found.append(Entry(module, name, head, promise, members, example.strip()))
    return found


ENTRIES = entries()
NAMES = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.module}.{entry.name}")


def test_every_public_name_is_told_of_and_every_name_told_of_is_public() -> None:
    public = {(module, name) for module in MODULES for name in import_module(module).__all__}
    assert {(entry.module, entry.name) for entry in ENTRIES} == public
    assert "shiftboss" in MODULES


def test_the_package_lists_exactly_the_names_that_it_has() -> None:
    """`__all__`, the homes of the lazy names, and what type checkers see are written one below the other."""
    tree = ast.parse(Path(shiftboss.__file__).read_text(encoding="utf-8"))
    seen = [
        alias.asname
        for block in tree.body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    ]
    assert sorted(shiftboss.__all__) == sorted(shiftboss._HOMES) == sorted(seen)
    assert set(shiftboss.__all__) <= set(dir(shiftboss))
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = shiftboss.nothing_of_the_kind


def own_members(kind: type) -> set[str]:
    """Public members that Shiftboss wrote, and not Django or Python."""
    if isinstance(kind, EnumMeta):
        return set(kind.__members__)
    ours = [owner for owner in kind.__mro__ if owner.__module__.startswith("shiftboss.")]
    return {
        name
        for owner in ours
        for name, value in vars(owner).items()
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, property | classmethod))
    }


@NAMES
def test_a_class_is_told_of_with_all_its_members_and_no_others(entry: Entry) -> None:
    if inspect.isclass(entry.thing):
        assert set(entry.members) == own_members(entry.thing)
    else:
        assert entry.members == {}


def parameters(signature: inspect.Signature) -> list[tuple[str, Any, bool]]:
    """Name, kind and whether it may be left out, of all parameters but self."""
    return [
        (one.name, one.kind, one.default is not one.empty)
        for one in signature.parameters.values()
        if one.name not in ("self", "cls")
    ]


def told(line: str) -> list[tuple[str, Any, bool]]:
    """The parameters of a signature as it is written on the page."""
    rest = line.removeprefix("async ")
    namespace: dict[str, Any] = {}
    tree = ast.parse(f"from __future__ import annotations\ndef {rest}: ...")
    arguments = tree.body[1].args
    # Defaults are names of the module that it stands in; whether there is one is all that is asked here.
    arguments.defaults = [ast.Constant(None)] * len(arguments.defaults)
    arguments.kw_defaults = [one and ast.Constant(None) for one in arguments.kw_defaults]
    exec(compile(ast.fix_missing_locations(tree), "reference.md", "exec"), namespace)
    return parameters(inspect.signature(namespace[rest.partition("(")[0]]))


@NAMES
def test_signatures_are_those_of_the_code(entry: Entry) -> None:
    if inspect.isroutine(entry.thing):
        assert told(entry.head) == parameters(inspect.signature(entry.thing))
    for name, line in entry.members.items():
        value = inspect.getattr_static(entry.thing, name)
        if inspect.isroutine(value):
            assert told(line) == parameters(inspect.signature(getattr(entry.thing, name))), name
            assert line.startswith("async ") == inspect.iscoroutinefunction(value), name
        elif isinstance(value, property):
            assert re.fullmatch(rf"{name}: .+", line), name
        else:
            assert ast.literal_eval(line) == value.value, name


@NAMES
def test_a_dataclass_is_told_of_with_all_its_public_fields(entry: Entry) -> None:
    if not is_dataclass(entry.thing):
        return
    inherited = {
        one.name
        for owner in entry.thing.__mro__
        if is_dataclass(owner) and not owner.__module__.startswith("shiftboss.")
        for one in fields(owner)
    }
    written = re.findall(r"^    (\w+): .+?( = .+)?$", entry.head, re.MULTILINE)
    public = [one for one in fields(entry.thing) if not one.name.startswith("_") and one.name not in inherited]
    optional = {one.name: one.default is not MISSING or one.default_factory is not MISSING for one in public}
    assert {name: bool(default) for name, default in written} == optional


@NAMES
def test_every_name_has_a_promise_and_an_example_that_uses_it(entry: Entry) -> None:
    lines = [line for line in entry.promise.splitlines() if line.strip() and not line.startswith("-")]
    assert lines
    assert not entry.promise.lstrip().startswith(f"{entry.name}(")  # the docstring that a dataclass makes itself
    example = re.fullmatch(r"```python\n(.*)\n```", entry.example, re.DOTALL)[1]
    ast.parse(example if "return " not in example else f"def view():\n{_indented(example)}")
    uses = {"Context", "ShiftbossTask", "ShiftbossResult"}
    assert entry.name in example or entry.name in uses


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


def test_every_error_that_calls_raise_is_public() -> None:
    """An error that a docstring of the surface names can be caught by name."""
    raised = {
        name
        for entry in ENTRIES
        for sentence in re.findall(r"Raises?\s(.+?)(?:\.\s|\Z)", entry.promise, re.DOTALL)
        for name in re.findall(r"\b[A-Z][a-z]+[A-Za-z]*[a-z]\b", sentence)
    }
    errors = {
        name for name, kind in vars(import_module("shiftboss.queue.errors")).items() if inspect.isclass(kind)
    }
    assert raised & errors <= set(shiftboss.__all__)
    assert not [name for name in raised & errors if hasattr(builtins, name)]


def test_the_options_of_a_task_are_those_that_the_documentation_lists() -> None:
    [table] = re.findall(r"^\| option \| default \| meaning \|\n\|[-|]+\n((?:\|.*\n)+)", TASKS, re.MULTILINE)
    listed = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    own = {one.name for one in fields(ShiftbossTask)} - {one.name for one in fields(Task)}
    of_django = {"queue_name", "priority", "takes_context"}
    assert listed == own | of_django
    assert [name for name in own if f"`{name}`" not in str(ShiftbossTask.__doc__)] == []
