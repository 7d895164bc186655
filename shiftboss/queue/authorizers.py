"""The project's own say: who may enqueue where, who watches a job by asking for its key, which staff see what.

Functions of the project, named in the settings. One that raises refuses, and so does one that answers anything but
what it is asked for.
"""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from shiftboss import conf
from shiftboss.queue.authority import Authority, Scoped, Staff, System
from shiftboss.queue.errors import NotAllowed

log = logging.getLogger("shiftboss.authorizers")


def guards_queues() -> bool:
    """Whether the project says who may enqueue where."""
    return conf.get().queue_authorizer is not None


def require_queue(*, authority: Authority, queue: str, task: str) -> None:
    """Refuse who may not enqueue this task into this queue. Raises NotAllowed; every enqueue asks it first."""
    path = conf.get().queue_authorizer
    if path is not None and not _asked(path, "QUEUE_AUTHORIZER", authority, queue, task):
        raise NotAllowed(f"{authority!r} may not enqueue {task} into the queue {queue!r}")


def may_watch(*, authority: Authority, job_id: int, key: str) -> bool:
    """Whether who asks for a key that another's job holds becomes a watcher of it; nobody without a hook."""
    path = conf.get().watch_authorizer
    if path is None:
        return False
    try:
        return _asked(path, "WATCH_AUTHORIZER", authority, job_id, key)
    except NotAllowed:
        return False  # as if it had said no; the log tells why


def scope_of(user: Any) -> Staff:
    """In whose name this user of the staff reads and acts; System where no hook says otherwise.

    Raises NotAllowed.
    """
    path = conf.get().staff_scope
    if path is None:
        return System()
    answer: Staff = _answer(path, "STAFF_SCOPE", (System, Scoped), user)
    return answer


def _asked(path: str, setting: str, *facts: Any) -> bool:
    return bool(_answer(path, setting, (bool,), *facts))


def _answer(path: str, setting: str, kinds: tuple[type, ...], *facts: Any) -> Any:
    """The hook's answer. Raises NotAllowed where it gives none, with the reason as its cause."""
    try:
        answer = imported(path)(*facts)
    except (Exception, SystemExit) as problem:  # an import runs the project's code
        log.exception("authorizer.failed", extra={"setting": setting, "path": path})
        raise NotAllowed(f"{setting} {path} failed, so nobody is let through: {problem}") from problem
    if not isinstance(answer, kinds):
        log.error("authorizer.no_answer", extra={"setting": setting, "path": path, "type": type(answer).__name__})
        wanted = "True or False" if kinds == (bool,) else "shiftboss.System() or shiftboss.Scoped(…)"
        raise NotAllowed(
            f"{setting} {path} answered with a {type(answer).__name__}, so nobody is let through: it must be "
            f"{wanted}"
        )
    return answer


@cache
def imported(path: str) -> Callable[..., Any]:
    """The function behind a dotted path. Raises ImportError, TypeError, or what the import itself raises."""
    module_path, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module_path), name)
    except (AttributeError, ValueError) as problem:
        raise ImportError(f"{path!r} leads to nothing: {problem}") from problem
    if not callable(found):
        raise TypeError(f"{path!r} is a {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return function
