"""What a keeper is told at its start, as JSON over an inherited descriptor."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperConfig:
    """All of a keeper's settings. Durations in seconds.

    `client` is the dotted path of a function that takes this object and returns (QueueClient, Wakeups).
    `executor_argv` starts an executor, `observer_argv` the process of the observers; orders are appended. `dsn`
    may hold a password: it never appears in a command line, a log or an error. `keeps_output`: what executors
    write may be kept by the keeper, which knows the keys of `redact_keys` and no rule of the project's own.
    """

    pool: str
    queues: tuple[str, ...]
    processes: int
    threads: int
    isolated: int
    max_jobs: int | None
    max_rss_mb: int | None
    max_worker_rss_mb: int | None
    lease_seconds: float
    heartbeat_seconds: float
    poll_seconds: float
    drain_seconds: float
    grace_seconds: float
    backoff_seconds: float
    backoff_cap_seconds: float
    stage_seconds: float
    reap_seconds: float
    unknown_task_seconds: float
    partition_days_ahead: int
    retention_days: float
    quarantine_retention_days: float
    client: str
    dsn: str
    executor_argv: tuple[str, ...]
    code_version: str | None
    run_folder: str
    redact_keys: tuple[str, ...]
    keeps_output: bool
    observers: tuple[str, ...]
    observer_backlog: int
    observer_argv: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """Handlers that run at the same time."""
        return self.processes * self.threads

    @property
    def margin_seconds(self) -> float:
        """How long before a lease's expiry its executor is killed where no renewal came."""
        return min(3.0, self.lease_seconds / 10)

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "KeeperConfig":
        """Read the text of `to_json`."""
        given: dict[str, Any] = json.loads(text)
        for name in ("queues", "executor_argv", "redact_keys", "observers", "observer_argv"):
            given[name] = tuple(given[name])
        return cls(**given)


def read_descriptor(fd: int) -> str:
    """All text of an inherited descriptor, which is closed then."""
    with os.fdopen(fd, "r", encoding="utf-8") as file:
        return file.read()
