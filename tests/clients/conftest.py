"""A client as a keeper uses it, on the record that tests of the store use too."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from asgiref.sync import async_to_sync

from shiftboss.queue.runtime.config import KeeperConfig
from tests.store import making
from tests.store.conftest import COMMITTED, record  # noqa: F401 - a fixture

R = TypeVar("R")
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder commit, for other connections to see."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(COMMITTED)


@pytest.fixture
def config(record: None) -> KeeperConfig:  # noqa: F811
    """A keeper's settings."""
    return keeper_config(making.address())


def keeper_config(dsn: str, *, queues: tuple[str, ...] = ("default",), lease_seconds: float = 30) -> KeeperConfig:
    """A keeper's settings for a database."""
    return KeeperConfig(
        pool="default",
        queues=queues,
        processes=1,
        threads=8,
        isolated=2,
        max_jobs=None,
        max_rss_mb=None,
        max_worker_rss_mb=None,
        lease_seconds=lease_seconds,
        heartbeat_seconds=5,
        poll_seconds=1,
        drain_seconds=20,
        grace_seconds=5,
        backoff_seconds=5,
        backoff_cap_seconds=3600,
        stage_seconds=0.5,
        reap_seconds=1,
        unknown_task_seconds=600,
        partition_days_ahead=14,
        retention_days=30,
        quarantine_retention_days=90,
        client="shiftboss.queue.clients.local:connect",
        dsn=dsn,
        executor_argv=(),
        code_version="v7",
        run_folder="",
        redact_keys=(),
        keeps_output=True,
        observers=(),
        observer_backlog=1000,
    )


@pytest.fixture
def loop(record: None) -> Callable[[Coroutine[Any, Any, R]], R]:  # noqa: F811
    """Runs a coroutine; Django's connection, where it is asked for, is the test's own."""

    async def wait(coroutine: Coroutine[Any, Any, R]) -> R:
        return await coroutine

    return async_to_sync(wait)
