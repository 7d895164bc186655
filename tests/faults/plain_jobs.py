"""Jobs of the plain functions, and what a keeper is told that runs them."""

import json
import sys
from dataclasses import replace
from typing import Any

from shiftboss.queue.authority import System
from shiftboss.queue.launch import keeper_config
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.store.enqueue import NewJob, enqueue
from shiftboss.queue.store.statement import run
from tests.runtime.programs import House

NEVER = 1000.0


def put(queue: str, task: str, *args: Any, **more: Any) -> int:
    """A job of a plain function."""
    new = NewJob(
        queue=queue,
        task=f"tests.faults.plain.{task}",
        args=json.dumps({"args": args, "kwargs": {}}),
        failure_limit=20,
        loss_limit=20,
        **more,
    )
    return run(enqueue(new, authority=System())).id


def plain_config(house: House, *queues: str, **more: Any) -> KeeperConfig:
    """A keeper of these queues with the plain executor; it does no upkeep, unless told to."""
    given: dict[str, Any] = {
        "dsn": house.dsn,
        "run_folder": str(house.folder / "run"),
        "queues": queues,
        "threads": 4,
        "isolated": 0,
        "lease_seconds": 3.0,
        "heartbeat_seconds": 0.5,
        "drain_seconds": 1.0,
        "stage_seconds": NEVER,
        "reap_seconds": NEVER,
        "executor_argv": (sys.executable, "-P", "-m", "tests.faults.plain"),
    }
    return replace(keeper_config("default"), **(given | more))
