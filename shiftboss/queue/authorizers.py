"""The project's own say in who may enqueue where, and who may watch a job by asking for its key.

Two functions of the project, named in the settings. One that raises refuses, and so does one that answers anything
but True or False.
"""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from shiftboss import conf
from shiftboss.queue.authority import Authority
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


def _asked(path: str, setting: str, *facts: Any) -> bool:
    """The hook's answer. Raises NotAllowed where it gives none, with the reason as its cause."""
    try:
        answer = imported(path)(*facts)
    except (Exception, SystemExit) as problem:  # an import runs the project's code
        log.exception("authorizer.failed", extra={"setting": setting, "path": path})
        raise NotAllowed(f"{setting} {path} failed, so nobody is let through: {problem}") from problem
    if not isinstance(answer, bool):
        log.error("authorizer.no_answer", extra={"setting": setting, "path": path, "type": type(answer).__name__})
        raise NotAllowed(
            f"{setting} {path} answered with a {type(answer).__name__}, so nobody is let through: it must be True "
            "or False"
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
