"""Django's Dummy and Immediate backends, for tasks with the options of Shiftboss."""

import random
from typing import Any

from django.utils import timezone

from shiftboss.compat import (
    BaseTaskBackend,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from shiftboss.queue import payload
from shiftboss.queue.results import ShiftbossResult
from shiftboss.queue.runtime.context import Context, Snooze
from shiftboss.queue.runtime.evidence import describe
from shiftboss.queue.tasks import ShiftbossTask

MAX_BYTES = 1024 * 1024


class _Tolerant(BaseTaskBackend):
    """What both have in common: every option is accepted, arguments are checked as the record would."""

    task_class = ShiftbossTask
    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def _new(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        self.validate_task(task)
        text = payload.encode_arguments(args, kwargs, max_bytes=MAX_BYTES)
        args, kwargs = payload.decode_arguments(text, typed=False)
        return ShiftbossResult(
            task=task,
            id=str(random.randrange(1, 2**62)),
            status=TaskResultStatus.READY,
            enqueued_at=timezone.now(),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )


class DummyBackend(_Tolerant):
    """Keeps what is enqueued in `results` and runs nothing: `"BACKEND": "shiftboss.testing.DummyBackend"`.

    No database is needed. `assert_enqueued` looks at it too.
    """

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.results: list[TaskResult] = []

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Keep it. Raises as ShiftbossBackend does for arguments that cannot be stored."""
        result = self._new(task, args, kwargs)
        self.results.append(result)
        task_enqueued.send(type(self), task_result=result)
        return result

    def enqueue_calls(self, calls: Any) -> list[TaskResult]:
        """For `enqueue_many`."""
        return [self.enqueue(*call) for call in calls]

    def get_result(self, result_id: str) -> TaskResult:
        """What was enqueued under this id in this thread. Raises TaskResultDoesNotExist."""
        for result in self.results:
            if result.id == result_id:
                return result
        raise TaskResultDoesNotExist(result_id)

    def clear(self) -> None:
        """Forget everything."""
        self.results.clear()


class ImmediateBackend(_Tolerant):
    """Runs each task at once where it is enqueued, once: `"BACKEND": "shiftboss.testing.ImmediateBackend"`.

    No database is needed. A failure is in the result, as with Django's own; one that snoozes is `READY` again and
    is not run again. A task that takes a context gets one: `progress()`, `event()` and `checkpoint` work and are
    kept nowhere. Keys, deadlines and `run_after` mean nothing here.
    """

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Run it."""
        result = self._new(task, args, kwargs)
        task_enqueued.send(type(self), task_result=result)
        now = timezone.now()
        _set(result, status=TaskResultStatus.RUNNING, started_at=now, last_attempted_at=now)
        result.worker_ids.append("immediate")
        task_started.send(type(self), task_result=result)
        try:
            _set(result, status=TaskResultStatus.SUCCESSFUL, _return_value=self._call(task, result, args, kwargs))
        except KeyboardInterrupt:
            raise
        except Snooze:
            _set(result, status=TaskResultStatus.READY)
            return result
        except BaseException as error:  # SystemExit too: a handler cannot end a worker
            self._fail(result, error)
        _set(result, finished_at=timezone.now())
        task_finished.send(type(self), task_result=result)
        return result

    def enqueue_calls(self, calls: Any) -> list[TaskResult]:
        """For `enqueue_many`."""
        return [self.enqueue(*call) for call in calls]

    def _call(self, task: Task, result: TaskResult, args: Any, kwargs: Any) -> Any:
        # What the handler gets has gone through JSON, as in a worker.
        args, kwargs = payload.decode_arguments(payload.encode_arguments(args, kwargs, max_bytes=MAX_BYTES))
        if task.takes_context:
            args = [Context(job_id=int(result.id), fence=1, attempt=1, _task_result=lambda _: result), *args]
        value = payload.encode_result(task.call(*args, **kwargs), max_bytes=MAX_BYTES)
        return None if value is None else payload.decode(value)

    def _fail(self, result: TaskResult, error: BaseException) -> None:
        evidence = describe(error)
        kind = evidence.type if "." in evidence.type else f"builtins.{evidence.type}"
        result.errors.append(TaskError(exception_class_path=kind, traceback=evidence.traceback))
        _set(result, status=TaskResultStatus.FAILED)


def _set(result: TaskResult, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(result, name, value)
