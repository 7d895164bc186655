"""What workers do, told to the project's observers in a process of the worker's own: see runtime/observing.py."""

import json
import logging
import signal
import socket
from typing import Any

from django.db import close_old_connections
from django.dispatch import Signal

from shiftboss.compat import TaskResult, TaskResultStatus, task_finished, task_started
from shiftboss.queue.authority import System
from shiftboss.queue.backend import backend_of_the_record
from shiftboss.queue.observation import JobFacts, WorkerFacts
from shiftboss.queue.observers import Audience
from shiftboss.queue.runtime.executor import die_with_parent
from shiftboss.queue.runtime.frames import Unpacker, pack
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run

log = logging.getLogger("shiftboss.observers")


def main(orders: str) -> None:
    """The life of the observers' process. `orders` is the JSON text that the keeper passes on the command line."""
    given = json.loads(orders)
    die_with_parent(given["keeper"])
    # Stop signals are the keeper's business, as in an executor.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    audience = Audience(given["observers"])
    unpacker = Unpacker()
    sock = socket.socket(fileno=given["socket"])
    while data := sock.recv(1 << 20):
        for message in unpacker.feed(data):
            for word, facts in message["told"]:
                _relay(audience, word, facts)
            close_old_connections()
            sock.sendall(pack({"told": len(message["told"])}))


def _relay(audience: Audience, word: str, given: dict[str, Any]) -> None:
    try:
        if word == "on_drain":
            audience.tell(word, WorkerFacts(**given))
            return
        if not word.startswith("on_"):
            word, given = _judged(word, given)
        audience.tell(word, JobFacts(**given))
    except Exception:  # the record cannot be reached, or a keeper of another version
        log.exception("observers.not_told", extra={"word": word})


def _judged(end: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What an end without success came to, by the record: another attempt, the last failure, or the job's end."""
    failures, losses = given.pop("failures"), given.pop("losses")
    job = run(read.job(authority=System(), job_id=given["job_id"]))
    same = job is not None and job.fence == given["fence"]
    if job is not None and same and job.state is State.CANCELLED:
        return "on_abort", {**given, "code": job.cancel_cause, "retry_in_seconds": None}
    final = (
        job is None
        or end == "discarded"
        or (end == "failed" and (given["retry_in_seconds"] is None or failures >= job.failure_limit))
        or (end == "lost" and losses >= job.loss_limit)
        or (same and job.state in {State.QUARANTINED, State.DISCARDED})
    )
    return ("on_failure", {**given, "retry_in_seconds": None}) if final else ("on_retry", given)


class Signals:
    """Sends `task_started` and `task_finished` of Django's Tasks API, with the result as the record has it."""

    def on_start(self, facts: JobFacts) -> None:
        """The result is that of the attempt that begins, whatever has become of it since."""
        result = self._result(facts)
        object.__setattr__(result, "status", TaskResultStatus.RUNNING)
        object.__setattr__(result, "finished_at", None)
        object.__setattr__(result, "_return_value", None)
        self._send(task_started, result)

    def on_success(self, facts: JobFacts) -> None:
        """It is done."""
        self._finished(facts)

    def on_failure(self, facts: JobFacts) -> None:
        """It will not run again by itself."""
        self._finished(facts)

    def on_abort(self, facts: JobFacts) -> None:
        """It was cancelled, or given back: then it has not finished."""
        self._finished(facts)

    def _finished(self, facts: JobFacts) -> None:
        result = self._result(facts)
        if result.is_finished:
            self._send(task_finished, result)

    def _result(self, facts: JobFacts) -> TaskResult:
        return backend_of_the_record().result_of(str(facts.job_id), authority=System())

    def _send(self, signal: Signal, result: TaskResult) -> None:
        for receiver, answer in signal.send_robust(type(backend_of_the_record()), task_result=result):
            if isinstance(answer, Exception):
                log.error("receiver.failed", extra={"receiver": repr(receiver)}, exc_info=answer)
