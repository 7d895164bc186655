"""A `django.tasks` backend: jobs are declared and enqueued with Django's own Tasks API.

    TASKS = {
        "default": {
            "BACKEND": "shiftboss.queue.backend.ShiftbossBackend",
            "OPTIONS": {"authority": System()},
        }
    }

Enqueueing runs on Django's own connection, so that a rollback takes the job with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.core import checks
from django.db import transaction
from django.db import utils as db
from psycopg import errors as pg

from shiftboss import conf
from shiftboss.compat import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from shiftboss.queue import observers, payload, registry
from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.errors import InvalidJob, KeyHeld, NotAllowed, SchemaTooOld, UnknownTask, UnsupportedDatabase
from shiftboss.queue.results import STATUS, ShiftbossResult, error_of
from shiftboss.queue.store import enqueue as jobs
from shiftboss.queue.store import read
from shiftboss.queue.store.enqueue import Enqueued, NewJob
from shiftboss.queue.store.statement import Verb, run
from shiftboss.queue.tasks import Call, ShiftbossTask, attempts_of, config_of
from shiftboss.queue.typed import check_call


class ShiftbossBackend(BaseTaskBackend):
    """Jobs in PostgreSQL. Option `authority`: in whose name, where `using(authority=…)` does not say it."""

    task_class = ShiftbossTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """E003: an unknown option, or an `authority` that is neither Owner nor System."""
        found = list(super().check(**kwargs))
        problems = [f"unknown option {name!r}; there is 'authority'" for name in set(self.options) - {"authority"}]
        try:
            if (given := self.options.get("authority")) is not None:
                owner_of(given)
        except TypeError as problem:
            problems.append(str(problem))
        hint = "Write OPTIONS = {'authority': shiftboss.System()} or give it with using(authority=…)."
        for text in sorted(problems):
            found.append(checks.Error(f"TASKS[{self.alias!r}]: {text}", hint=hint, id="shiftboss.E003"))
        return found

    def authority(self, given: Authority | None) -> Authority:
        """The authority of a call: the one given, else the backend's. Raises NotAllowed where there is none."""
        authority = given if given is not None else self.options.get("authority")
        if authority is None:
            raise NotAllowed(
                f"no authority: call task.using(authority=Owner('…')) or set TASKS[{self.alias!r}]"
                "['OPTIONS']['authority']"
            )
        owner_of(authority)
        return authority

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Put a job into the record, in the transaction that is open on Django's connection.

        Raises InvalidJob (or its child NotStorable) and Django's own InvalidTask for bad input, NotAllowed
        without authority, SchemaTooOld where migrations are missing.
        """
        self.validate_task(task)
        authority = self.authority(getattr(task, "authority", None))
        job = _new_job(task, args, kwargs)
        enqueued = on_record(jobs.enqueue(job, authority=authority))
        observers.enqueued([(job, enqueued)])
        return self._answer(task, job, enqueued, authority)

    def enqueue_calls(self, calls: Sequence[Call]) -> list[TaskResult]:
        """As `enqueue`, for many, all or none; results come in the order of the calls."""
        wanted: dict[Authority, list[tuple[int, NewJob]]] = {}
        for place, (task, args, kwargs) in enumerate(calls):
            self.validate_task(task)
            authority = self.authority(task.authority)
            wanted.setdefault(authority, []).append((place, _new_job(task, args, kwargs)))
        results: dict[int, TaskResult] = {}
        with transaction.atomic(using=conf.get().database):
            for authority, placed in wanted.items():
                answers = on_record(jobs.enqueue_many((job for _, job in placed), authority=authority))
                observers.enqueued(zip((job for _, job in placed), answers, strict=True))
                for (place, job), enqueued in zip(placed, answers, strict=True):
                    results[place] = self._answer(calls[place].task, job, enqueued, authority)
        return [results[place] for place in range(len(calls))]

    def _answer(self, task: Task, job: NewJob, enqueued: Enqueued, authority: Authority) -> TaskResult:
        if enqueued.existing:
            return self._existing(job, enqueued, authority)
        args, kwargs = payload.decode_arguments(job.args, typed=False)
        result = ShiftbossResult(
            task=task,
            id=str(enqueued.id),
            status=TaskResultStatus.READY,
            enqueued_at=enqueued.enqueued_at,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def _existing(self, job: NewJob, enqueued: Enqueued, authority: Authority) -> TaskResult:
        try:
            return self.result_of(str(enqueued.id), authority=authority)
        except TaskResultDoesNotExist:
            advice = "it is another owner's, which this authority may not see"
            raise KeyHeld(str(job.key), enqueued.id, advice) from None

    def get_result(self, result_id: str) -> TaskResult:
        """A job as Django's TaskResult, whichever table holds it. Raises TaskResultDoesNotExist."""
        return self.result_of(result_id, authority=None)

    def result_of(self, result_id: str, *, authority: Authority | None) -> TaskResult:
        """As `get_result`, in the name of `authority` (None: the backend's option)."""
        seen_by = self.authority(authority)
        job = None
        if result_id.isascii() and result_id.isdigit() and len(result_id) < 19:
            job = on_record(read.job(authority=seen_by, job_id=int(result_id)))
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        attempts = on_record(read.attempts(authority=seen_by, job_id=job.id))
        return self._result(job, attempts, authority)

    def _result(
        self, job: read.JobDetail, attempts: list[read.AttemptRow], authority: Authority | None
    ) -> TaskResult:
        try:
            task = registry.resolve(job.task)
        except UnknownTask as error:
            raise TaskResultMismatch(str(error)) from error
        args, kwargs = payload.decode_arguments(job.args, typed=False)
        workers = [str(attempt.worker_id) for attempt in attempts if attempt.worker_id is not None]
        if job.worker_id is not None:
            workers.append(str(job.worker_id))
        changes: dict[str, Any] = {"priority": job.priority, "queue_name": job.queue, "backend": self.alias}
        if authority is not None:
            # So that the result is also read again in this name.
            changes["authority"] = authority
        result = ShiftbossResult(
            task=replace(task, **changes),
            id=str(job.id),
            status=STATUS[job.state],
            enqueued_at=job.enqueued_at,
            started_at=min((a.started_at for a in attempts if a.started_at), default=job.started_at),
            finished_at=job.finished_at or job.quarantined_at,
            last_attempted_at=job.started_at,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[error_of(attempt) for attempt in attempts if attempt.outcome in {"failed", "lost"}],
            worker_ids=workers,
        )
        if job.result is not None:
            object.__setattr__(result, "_return_value", payload.decode(job.result))
        return result


def backend_of_the_record() -> "ShiftbossBackend":
    """The first backend of `TASKS` that is Shiftboss's. Raises LookupError where there is none."""
    for alias in task_backends:
        if isinstance(backend := task_backends[alias], ShiftbossBackend):
            return backend
    raise LookupError("no backend of settings.TASKS is shiftboss.queue.backend.ShiftbossBackend")


def enqueue_many(calls: Iterable[Call]) -> list[TaskResult]:
    """Enqueue many jobs at once, all or none: `shiftboss.enqueue_many([task.with_arguments(1), …])`.

    Results come in the order of the calls. Jobs without keys are copied in, tens of thousands a second. Raises as
    `enqueue` does, and InvalidJob where a task's backend is not Shiftboss's or they have several.
    """
    calls = list(calls)
    backends = {call.task.backend for call in calls}
    if not calls:
        return []
    backend = task_backends[next(iter(backends))]
    if len(backends) > 1 or not hasattr(backend, "enqueue_calls"):
        raise InvalidJob(f"enqueue_many wants tasks of one Shiftboss backend, not of {sorted(backends)}")
    results: list[TaskResult] = backend.enqueue_calls(calls)
    return results


def _new_job(task: Task, args: Any, kwargs: Any) -> NewJob:
    check_call(task.func, args, kwargs, takes_context=task.takes_context)
    config = conf.get()
    given: dict[str, Any] = {}
    if isinstance(task, ShiftbossTask):
        given = {
            "key": task.key_of(args, kwargs),
            "key_scope": task.key_scope,
            "on_conflict": task.on_conflict,
            "follow_up": task.follow_up,
            "deadline": task.deadline,
            "tags": task.tags,
            "tenant": task.tenant,
            "watchers": task.watchers,
        }
    return NewJob(
        queue=task.queue_name,
        task=task.module_path,
        args=payload.encode_arguments(args, kwargs, max_bytes=config.max_args_bytes),
        priority=int(task.priority),
        due_at=task.run_after,
        failure_limit=attempts_of(task, task.queue_name),
        loss_limit=config.max_losses,
        revision=config_of(task, task.queue_name),
        **given,
    )


def on_record(verb: Verb[Any]) -> Any:
    """Run a verb on Django's connection, with the two usual mistakes of a setup told by name."""
    from django.db import connections

    alias = conf.get().database
    vendor = connections[alias].vendor
    if vendor != "postgresql":
        raise UnsupportedDatabase(
            f"DATABASES[{alias!r}] is {vendor}; Shiftboss needs PostgreSQL 15 or newer: set SHIFTBOSS['DATABASE'] "
            "to the alias of one"
        )
    try:
        return run(verb)
    except db.ProgrammingError as error:
        if isinstance(error.__cause__, pg.UndefinedTable | pg.UndefinedColumn):
            raise SchemaTooOld("Shiftboss's tables are missing: run `manage.py migrate`") from error
        raise
