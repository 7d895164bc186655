"""What is kept of attempts that were no success, by real workers."""

import hashlib
import json
import os
import socket
from typing import Any

import pytest

from shiftboss.queue.states import State
from tests.faults.conftest import Configure
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, wait_for_state
from tests.store.making import scalar


def evidence_of(job_id: str) -> dict[str, Any]:
    """Of a job with one such attempt."""
    [attempt] = attempts(job_id)
    return dict(json.loads(attempt.evidence))


def digest_of(job_id: str) -> str:
    """Of a job's arguments, as the record holds them."""
    return hashlib.sha256(
        scalar("select args::text from shiftboss_job where id = %s", int(job_id)).encode()
    ).hexdigest()


@pytest.mark.requirement("L29", "L30")
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_failed_attempt_keeps_what_it_used_what_it_wrote_and_what_it_had_saved(
    house: House, isolation: str
) -> None:
    house.worker()
    failing = tasks.fail_loudly.using(isolation=isolation, max_attempts=1).enqueue("the reason").id
    wait_for_state(failing, State.QUARANTINED, seconds=90)
    kept = evidence_of(failing)
    output = kept.pop("output")
    assert kept.pop("cpu_ms") > 0
    assert 5_000 < kept.pop("memory_kb") < 5_000_000
    assert kept.pop("pid") != os.getpid()
    assert kept == {
        "host": socket.gethostname(),
        "args_sha256": digest_of(failing),
        "memory_shared": isolation == "thread",
        "checkpoint": {"page": 3},
    }
    # What a child writes has no context: it is kept where the process is the job's own.
    mine = ["printed", "to the error stream", *(["by a child"] if isolation == "process" else [])]
    assert [line for line in output.splitlines() if line in {*mine, "by a child"}] == mine
    assert "logged as well" in output


@pytest.mark.requirement("R6", "L29")
@pytest.mark.parametrize(("how", "told"), [("killed", {"signal": 11}), ("gone", {"exit_code": 7})])
def test_whoever_falls_leaves_its_last_words(
    house: House, configure: Configure, how: str, told: dict[str, int]
) -> None:
    house.worker()
    configure(MAX_LOSSES=1)
    falling = tasks.fall_loudly.enqueue(how).id
    wait_for_state(falling, State.QUARANTINED, seconds=90)
    kept = evidence_of(falling)
    assert kept["output"].endswith("the last word\nand one by its number\n")
    assert {name: kept[name] for name in told} == told
    assert kept["host"] == socket.gethostname()
    assert kept["args_sha256"] == digest_of(falling)
    assert kept["cpu_ms"] > 0
    assert kept["memory_kb"] > 5_000


@pytest.mark.requirement("L24")
def test_what_a_fallen_process_has_written_is_kept_without_what_a_key_gives_away(
    house: House, configure: Configure
) -> None:
    worker = house.worker()
    configure(MAX_LOSSES=1)
    falling = tasks.fall_loudly.enqueue("gone", word="password=hunter2-of-the-shop").id
    wait_for_state(falling, State.QUARANTINED, seconds=90)
    output = evidence_of(falling)["output"]
    assert "password=" in output
    assert "hunter2" not in output
    assert worker.says("the last word")
