"""From a task's name to the task."""

import sys
from pathlib import Path

import pytest

from shiftboss.queue import registry
from shiftboss.queue.errors import UnknownTask

pytestmark = pytest.mark.requirement("C8")


class Declared:
    """As much of a task as the engine needs."""

    takes_context = False
    queue_name = "default"
    module_path = f"{__name__}.declared"

    @staticmethod
    def func() -> None:
        """Nothing."""


declared = Declared()


def test_a_dotted_path_leads_to_its_task() -> None:
    assert registry.resolve(f"{__name__}.declared") is declared
    assert f"{__name__}.declared" in registry.known()


@pytest.mark.parametrize(
    "name",
    ["", ".", "nodots", ".a.b", "a..b", "no.such.module.task", f"{__name__}.missing", "os.sep\x00.x", "é.ß"],
)
def test_a_path_that_leads_nowhere_is_an_unknown_task(name: str) -> None:
    with pytest.raises(UnknownTask, match="cannot be imported"):
        registry.resolve(name)
    assert name not in registry.known()


@pytest.mark.parametrize("name", ["os.path.join", f"{__name__}.Path", "sys.maxsize"])
def test_a_path_to_something_else_is_told(name: str) -> None:
    with pytest.raises(UnknownTask, match="not a task: decorate it with @task"):
        registry.resolve(name)


@pytest.mark.parametrize("source", ["raise RuntimeError('no')", "import sys; sys.exit(3)", "def broken(:"])
def test_a_module_that_cannot_be_imported_takes_nobody_down(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_tasks.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_tasks", raising=False)
    with pytest.raises(UnknownTask, match="broken_tasks"):
        registry.resolve("broken_tasks.task")
