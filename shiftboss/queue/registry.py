"""Task names and the tasks behind them. A name is a dotted path: module and function."""

from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from shiftboss.queue.errors import UnknownTask


@runtime_checkable
class AnyTask(Protocol):
    """What the engine needs of a task; Django's `Task` has it."""

    func: Any
    takes_context: bool
    queue_name: str

    @property
    def module_path(self) -> str:
        """The task's name."""


_names: set[str] = set()


def add(name: str) -> None:
    """Note that this process knows a task; called when one is declared."""
    _names.add(name)


def known() -> frozenset[str]:
    """The tasks that this process has seen declared or resolved."""
    return frozenset(_names)


def resolve(name: str) -> Any:
    """The task (Django's `Task`) behind a dotted path. Raises UnknownTask where it leads to none."""
    module_path, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module_path), attribute)
    except (Exception, SystemExit) as error:
        # An import runs the user's code, so it can fail in any way; a script may even call sys.exit().
        raise UnknownTask(f"{name!r} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, AnyTask):
        raise UnknownTask(f"{name!r} is a {type(found).__name__}, not a task: decorate it with @task")
    add(name)
    return found
