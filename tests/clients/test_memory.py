"""What the memory record has for itself: threads, bounds, and a file to save it to."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.clients.memory import MemoryStore
from shiftboss.queue.contract import Lease, Note, NoteKind, Registration, Settlement
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import State
from tests.clients.records import SYSTEM, MemoryRecord
from tests.store.making import DONE, FAILED, TASK, new_job

KIM = Owner("kim")


def worker_of(store: MemoryStore) -> int:
    """The id of a worker."""
    registration = Registration(
        pool="default",
        host="web-1",
        pid=1,
        code_version=None,
        queues=("default",),
        processes=1,
        threads=1,
        lease_seconds=30,
        heartbeat_seconds=5,
    )
    return store.register(registration, authority=SYSTEM, tasks=[TASK])


def claim(store: MemoryStore, worker: int, n: int = 1) -> list[Lease]:
    """Leases of so many jobs."""
    jobs = store.claim(
        authority=SYSTEM, worker_id=worker, queue="default", tasks=[TASK], limit=n, lease_seconds=30
    )
    return [job.lease for job in jobs]


def told(store: MemoryStore) -> Any:
    """All that a store says of its jobs, but for what passes with time."""
    ids = [row.id for state in State for row in store.jobs(authority=SYSTEM, state=state, limit=100)]
    answer = []
    for job_id in sorted(ids):
        job = store.job(authority=SYSTEM, job_id=job_id)
        fields = {name: getattr(job, name) for name in type(job).__slots__ if name != "lease_seconds_left"}
        attempts = store.attempts(authority=SYSTEM, job_id=job_id)
        answer.append((fields, attempts, store.events(authority=SYSTEM, job_id=job_id)))
    return answer


@pytest.mark.requirement("N3", "N10")
def test_many_threads_at_once_get_each_job_once() -> None:
    store = MemoryStore()
    store.enqueue_many([new_job() for _ in range(400)], authority=SYSTEM)
    taken: list[Lease] = []
    start = threading.Barrier(8)

    def work() -> None:
        worker = worker_of(store)
        start.wait(10)
        while leases := claim(store, worker, 3):
            taken.extend(leases)
            store.report([(lease, DONE) for lease in leases], authority=SYSTEM, worker_id=worker)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(taken), len(set(taken))) == (400, 400)
    assert len(store.jobs(authority=SYSTEM, state=State.COMPLETED, limit=500)) == 400


@pytest.mark.requirement("N3", "P7")
def test_only_the_last_finished_jobs_are_kept_with_what_is_told_of_them() -> None:
    store = MemoryStore(keep_finished=2)
    ids = [store.enqueue(new_job(), authority=SYSTEM).id for _ in range(3)]
    store.report([(Lease(ids[0], 1), DONE)], authority=SYSTEM, worker_id=9)
    store.cancel(ids, authority=SYSTEM)
    assert [row.id for row in store.jobs(authority=SYSTEM, state=State.CANCELLED)] == [ids[2], ids[1]]
    assert store.events(authority=SYSTEM, job_id=ids[0]) == []


@pytest.fixture
def full() -> MemoryRecord:
    """A store with jobs in many states, one of them running."""
    store = MemoryRecord()
    worker = worker_of(store)
    how = {"watchers": ("sam",), "tags": ("x",), "tenant": "acme", "revision": TaskConfig(task=TASK)}
    store.enqueue(new_job(priority=9, key="running", **how), authority=KIM)
    store.enqueue(new_job(priority=8, failure_limit=1), authority=SYSTEM)
    store.enqueue(new_job(priority=7), authority=SYSTEM)
    store.enqueue(new_job(priority=6), authority=SYSTEM)
    running, failing, done, failed = claim(store, worker, 4)
    store.note([(running, Note(NoteKind.CHECKPOINT, '{"row": 7}'))], authority=SYSTEM, worker_id=worker)
    store.report([(failing, FAILED), (done, DONE), (failed, FAILED)], authority=SYSTEM, worker_id=worker)
    store.report([(done, FAILED)], authority=SYSTEM, worker_id=worker)
    store.enqueue(new_job(due_in=3600, deadline_in=7200), authority=SYSTEM)
    store.enqueue(new_job(key="running", follow_up=True), authority=KIM)
    store.enqueue(new_job(), authority=SYSTEM)
    store.pause("mail", authority=SYSTEM, by="kim", reason="stop")
    store.limit("slow", authority=SYSTEM, concurrency=3)
    return store


@pytest.mark.requirement("R9", "N3")
def test_what_is_saved_is_restored(full: MemoryRecord, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    full.save(file)
    restored = MemoryStore.load(file, clock=full._clock)
    before, after = told(full), told(restored)
    assert len(before) == 7
    # All but the one that ran.
    assert after[1:] == before[1:]
    assert not restored.pause("mail", authority=SYSTEM, by="sam", reason="me too")
    assert restored.revisions([TaskConfig(task=TASK).revision], authority=SYSTEM)
    # New ids do not meet old ones, and the next claim goes on where the last one ended.
    assert restored.enqueue(new_job(), authority=SYSTEM).id == 8
    again = tmp_path / "again.json"
    restored.save(again)
    assert told(MemoryStore.load(again, clock=full._clock)) == told(restored)


@pytest.mark.requirement("R9", "N15", "N14", "L4")
def test_a_run_that_was_under_way_is_lost_with_its_process_and_its_worker_cannot_write(
    full: MemoryRecord, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.json"
    full.save(file)
    restored = MemoryStore.load(file)
    job = restored.job(authority=SYSTEM, job_id=1)
    assert job is not None
    assert (job.state, job.losses, job.worker_id, job.fence) == (State.RETRYABLE, 1, None, 1)
    assert job.error_code == "process_ended"
    assert [one.outcome for one in restored.attempts(authority=SYSTEM, job_id=1)] == ["lost"]
    late = Lease(1, 1)
    assert restored.report([(late, DONE)], authority=SYSTEM, worker_id=1) == Settlement(lost={late})
    restored.stage(authority=SYSTEM)
    assert claim(restored, 2) == [Lease(1, 2)]


@pytest.mark.requirement("R9", "L29")
def test_a_job_that_ends_its_process_every_time_is_held_at_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    store = MemoryStore()
    store.enqueue(new_job(loss_limit=3), authority=SYSTEM)
    for _ in range(3):
        store.stage(authority=SYSTEM)
        assert len(claim(store, 1)) == 1
        store.save(file)
        store = MemoryStore.load(file)
    [held] = store.jobs(authority=SYSTEM, state=State.QUARANTINED)
    assert held.quarantine_reason == "losses_exhausted"


@pytest.mark.requirement("R9")
def test_a_file_is_replaced_in_one_step_and_read_by_its_owner_alone(
    full: MemoryRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "jobs.json"
    full.save(file)
    before = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def full_disk(fd: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    full.enqueue(new_job(), authority=SYSTEM)
    with pytest.raises(OSError, match="no space"):
        full.save(file)
    assert file.read_text() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.requirement("R9")
@pytest.mark.parametrize(
    ("content", "words"),
    [("[]", "no saved store"), ('{"format": "x"}', "no saved store"), ("{", "Expecting")],
)
def test_a_file_that_holds_no_store_is_refused(content: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=words):
        MemoryStore.load(file)


@pytest.mark.requirement("R9")
def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    MemoryStore().save(file)
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 2}))
    with pytest.raises(ValueError, match="version 2; this one reads version 1"):
        MemoryStore.load(file)


@pytest.mark.requirement("N3", "N1")
def test_it_needs_neither_django_nor_a_database_driver() -> None:
    code = (
        "import sys; import shiftboss.queue.clients.memory;"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'django', 'psycopg'}))"
    )
    found = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
