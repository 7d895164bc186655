"""Helpers for a project's own tests: run jobs inside of a test, see what was enqueued, start real workers."""

from shiftboss.testing.backends import DummyBackend, ImmediateBackend
from shiftboss.testing.inline import JobRun, run_jobs
from shiftboss.testing.looking import EnqueuedJob, assert_enqueued, assert_not_enqueued, enqueued
from shiftboss.testing.programs import RunningWorker, running_worker

__all__ = [
    "DummyBackend",
    "EnqueuedJob",
    "ImmediateBackend",
    "JobRun",
    "RunningWorker",
    "assert_enqueued",
    "assert_not_enqueued",
    "enqueued",
    "run_jobs",
    "running_worker",
]
