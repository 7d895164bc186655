"""A real worker on the test's database, for tests that want its processes: with `transaction=True`."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from shiftboss import conf
from shiftboss.queue.errors import InTransaction
from shiftboss.queue.launch import apply_settings, keeper_config, project_paths, settings_module

NAMES = "SHIFTBOSS_TEST_DATABASES"
MODULE = "shiftboss.testing.executor"
READY = "executor.ready"


class RunningWorker:
    """A worker that runs. `output` is what it has written so far; `stop()` drains it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """The keeper's process."""
        return self._process.pid

    @property
    def output(self) -> str:
        """Its log so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def stop(self, *, seconds: float = 60.0) -> int:
        """SIGTERM, and the exit code: 0 where it drained. It is killed where it does not end within `seconds`."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def wait_until_ready(self, seconds: float) -> None:
        """Until it can run jobs. Raises RuntimeError with its output where it ends instead."""
        ends_at = time.monotonic() + seconds
        while READY not in self.output:
            if self._process.poll() is not None or time.monotonic() > ends_at:
                raise RuntimeError(f"the worker is not ready; it says:\n{self.output}")
            time.sleep(0.02)


@contextmanager
def running_worker(pool: str = "default", *, seconds: float = 60.0) -> Iterator[RunningWorker]:
    """A worker of a pool, on the databases of this test run; it is ready in the block, and drained after it.

    Its handlers run in processes of their own, which load the settings module: what `override_settings` has
    changed they do not see. They see committed rows only, so the test is a `TransactionTestCase`, or marked
    `django_db(transaction=True)`. Raises InTransaction elsewhere, RuntimeError where the worker does not start.
    """
    if connections[conf.get().database].in_atomic_block:
        raise InTransaction(
            "a worker sees committed rows only: use TransactionTestCase or django_db(transaction=True), or "
            "shiftboss.testing.run_jobs(), which runs jobs inside of the test's transaction"
        )
    apply_settings()
    with tempfile.TemporaryDirectory(prefix="shiftboss-testing-") as folder:
        argv = (sys.executable, "-P", "-m", MODULE)
        config = replace(keeper_config(pool), executor_argv=argv, observer_argv=argv, run_folder=folder)
        log = Path(folder, "worker.log")
        worker = RunningWorker(_start(config.to_json(), log), log)
        try:
            worker.wait_until_ready(seconds)
            yield worker
        finally:
            worker.stop()


def _start(config: str, log: Path) -> "subprocess.Popen[bytes]":
    names = {alias: connections[alias].settings_dict["NAME"] for alias in connections}
    environment = {
        **os.environ,
        ENVIRONMENT_VARIABLE: os.environ.get(ENVIRONMENT_VARIABLE) or settings_module(),
        NAMES: json.dumps(names),
        "PYTHONPATH": os.pathsep.join(project_paths()),
    }
    reader, writer = os.pipe()
    try:
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "shiftboss.queue.runtime", str(reader)],
                env=environment,
                pass_fds=(reader,),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
    finally:
        os.write(writer, config.encode())
        os.close(writer)
        os.close(reader)
