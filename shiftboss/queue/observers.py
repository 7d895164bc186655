"""Observers of a project, `SHIFTBOSS["OBSERVERS"]`: loaded, and told of what this process enqueues, in a thread.

Whatever an observer does, jobs go on: one that raises is logged, and the others are told all the same; one that
hangs fills a backlog, whose overflow is dropped and counted. Of what workers do it is told by telling.py.
"""

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from django.db import close_old_connections, transaction
from django.dispatch import Signal
from django.utils.module_loading import import_string

from shiftboss import conf
from shiftboss.compat import task_finished, task_started
from shiftboss.queue.jobs import Enqueued, NewJob
from shiftboss.queue.observation import WORDS, Backlog, JobFacts, WorkerFacts

log = logging.getLogger("shiftboss.observers")

SIGNALS = "shiftboss.queue.telling.Signals"
BATCH = 100
FLUSH_SECONDS = 2.0
"""So long a process that ends waits for observers that have not been told of its enqueues."""


def load(path: str) -> Any:
    """The observer under a dotted path; a class is called without arguments. Raises as `imported`."""
    found = imported(path)
    return found() if isinstance(found, type) else found


def imported(path: str) -> Any:
    """The class or object under a dotted path.

    Raises ImportError, or TypeError where it has none of the methods, or where nobody would await one.
    """
    found = import_string(path)
    methods = [method for word in WORDS if callable(method := getattr(found, word, None))]
    if not methods and not hasattr(found, "__getattr__"):
        raise TypeError(f"{path} has none of the methods {', '.join(WORDS)}")
    for method in methods:
        if iscoroutinefunction(method):
            raise TypeError(f"{path}: {method.__name__} is a coroutine function, and observers are called")
    return found


class Audience:
    """Observers, each told of what it has a method for. Telling never raises.

    An error of one kind in one method is logged with its traceback the first time only.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._observers: list[tuple[str, Any]] = []
        self._logged: set[tuple[str, str, type]] = set()
        for path in paths:
            try:
                self._observers.append((path, load(path)))
            except Exception:
                log.exception("observer.not_loaded", extra={"observer": path})

    def tell(self, word: str, facts: JobFacts | WorkerFacts) -> None:
        """Tell all of them."""
        for path, observer in self._observers:
            if (method := getattr(observer, word, None)) is not None:
                try:
                    method(facts)
                except Exception as error:
                    self._failed(path, word, error)

    def _failed(self, path: str, word: str, error: Exception) -> None:
        kind = path, word, type(error)
        if kind not in self._logged:
            self._logged.add(kind)
            log.exception("observer.failed", extra={"observer": path, "method": word})


class Teller:
    """A thread that tells of enqueues; it is started with the first of them."""

    def __init__(self, paths: Sequence[str], limit: int) -> None:
        self._paths = paths
        self._backlog: Backlog[JobFacts] = Backlog(limit)
        threading.Thread(target=self._work, name="shiftboss-observers", daemon=True).start()

    def put(self, facts: Sequence[JobFacts]) -> None:
        """Tell of these, soon."""
        self._backlog.put(facts)

    def flush(self, seconds: float) -> None:
        """Wait until all have been told, at most so long."""
        self._backlog.wait_until_empty(seconds)

    def _work(self) -> None:
        audience = Audience(self._paths)
        counted = 0
        while True:
            batch = self._backlog.first(BATCH, wait_seconds=60.0)
            for facts in batch:
                audience.tell("on_enqueue", facts)
            close_old_connections()
            self._backlog.remove(len(batch), told=True)
            if (dropped := self._backlog.dropped) != counted:
                log.warning("observers.dropped", extra={"observations": dropped - counted})
                counted = dropped


def wanted(configured: Sequence[str]) -> tuple[str, ...]:
    """The observers of a worker: those of the settings, and the signals where anybody is connected to them.

    Django's own receivers, which log, are nobody.
    """
    connected = any(_is_listened_to(signal) for signal in (task_started, task_finished))
    return (*configured, SIGNALS) if connected else tuple(configured)


def _is_listened_to(signal: Signal) -> bool:
    for _, receiver, *_ in signal.receivers:
        found = receiver() if isinstance(receiver, weakref.ReferenceType) else receiver
        if not str(getattr(found, "__module__", "")).startswith(("django.tasks", "django_tasks")):
            return True
    return False


_teller: Teller | None = None
_making = threading.Lock()


def enqueued(jobs: Iterable[tuple[NewJob, Enqueued]]) -> None:
    """Tell observers of new jobs, once the open transaction is committed. Costs nothing where there are none."""
    config = conf.get()
    if config.observers:
        facts = [_facts(job, answer) for job, answer in jobs if not answer.existing]
        transaction.on_commit(partial(_put, config, facts), using=config.database, robust=True)


def _facts(job: NewJob, answer: Enqueued) -> JobFacts:
    at = answer.enqueued_at.timestamp()
    return JobFacts(at=at, job_id=answer.id, task=job.task, queue=job.queue, priority=job.priority)


def _put(config: conf.Config, facts: Sequence[JobFacts]) -> None:
    global _teller
    with _making:
        if _teller is None:
            _teller = Teller(config.observers, config.observer_backlog)
            atexit.register(_teller.flush, FLUSH_SECONDS)
    _teller.put(facts)


def _forget_teller() -> None:
    # A thread does not survive a fork; what waited in the parent is told there.
    global _teller, _making
    _teller, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_teller)
