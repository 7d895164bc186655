"""The worker within a program, over a store in memory and over PostgreSQL."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from shiftboss import conf, worker_of_settings
from shiftboss.queue.clients.local import LocalClient, LocalWakeups
from shiftboss.queue.clients.memory import Functions, MemoryClient
from shiftboss.queue.contract import Heartbeat, Known, Lease, Settlement, WorkerStatus
from shiftboss.queue.errors import StoreUnavailable, WorkerEnded
from shiftboss.queue.handlers import DjangoHandlers
from shiftboss.queue.outcomes import Done
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.context import Cancelled
from shiftboss.queue.runtime.worker import Worker
from shiftboss.queue.states import State
from tests.clients import tasks
from tests.clients.records import SYSTEM, MemoryRecord
from tests.store.making import rows, scalar
from tests.waiting import wait_for

LONG = 20.0
"""Seconds within which a fact has to come, on a machine that has much else to do."""


class Gate:
    """A handler that stands at a gate: the test knows that it runs, and lets it go."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.open = threading.Event()
        self.causes: list[str] = []

    def stand(self, context: Any) -> str:
        """Stand until the gate opens, whatever the token says."""
        self.inside.release()
        assert self.open.wait(LONG)
        return "through"

    def listen(self, context: Any) -> None:
        """Stand until the token is set."""
        self.inside.release()
        wait_for(lambda: context.cancelled, seconds=LONG, every=0.005)
        self.causes.append(str(context.cancelled))
        context.raise_if_cancelled()

    async def listen_in_a_coroutine(self, context: Any) -> None:
        """Likewise, on the event loop."""
        self.inside.release()
        async with asyncio.timeout(LONG):
            while not context.cancelled:
                await asyncio.sleep(0.005)
        self.causes.append(str(context.cancelled))
        raise Cancelled(context.cancelled)

    def entered(self, n: int = 1) -> None:
        """Wait for so many handlers to be inside."""
        for _ in range(n):
            assert self.inside.acquire(timeout=LONG)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Every test leaves as many threads as it found."""
    before = set(threading.enumerate())
    yield
    wait_for(lambda: set(threading.enumerate()) <= before, seconds=LONG)


@pytest.fixture
def store() -> MemoryRecord:
    """A store in memory."""
    return MemoryRecord()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate, opened at the end."""
    gate = Gate()
    yield gate
    gate.open.set()


@pytest.fixture
def functions(gate: Gate) -> Functions:
    """Tasks."""
    functions = Functions(backoff_seconds=3600)
    functions.add(lambda a, b: a + b, name="sum")
    functions.add(fail, name="fail")
    functions.add(twice, name="twice")
    functions.add(tell, name="tell", takes_context=True)
    functions.add(gate.stand, name="stand", takes_context=True)
    functions.add(gate.listen, name="listen", takes_context=True)
    functions.add(gate.listen, name="listen shortly", takes_context=True, timeout_seconds=0.2)
    functions.add(gate.listen_in_a_coroutine, name="listen in a coroutine", takes_context=True)
    return functions


def fail() -> None:
    """It does not work."""
    raise ValueError("no")


async def twice(number: int) -> int:
    """A coroutine."""
    await asyncio.sleep(0)
    return 2 * number


def tell(context: Any) -> int:
    """Tell something."""
    context.progress(1, total=2)
    context.event("half", n=1)
    return int(context.fence)


Make = Callable[..., Worker]


@pytest.fixture
def make(store: MemoryRecord, functions: Functions) -> Iterator[Make]:
    """Makes workers."""
    made: list[Worker] = []

    def worker(*, client: Any = None, **how: Any) -> Worker:
        client = client or store.client(lease_seconds=how.get("lease_seconds", 30.0))
        made.append(Worker(client, functions, wakeups=store.wakeups(), **how))
        return made[-1]

    yield worker
    for one in made:
        one.destroy(0)


def put(store: MemoryRecord, functions: Functions, task: str, *args: Any, **options: Any) -> int:
    """A new job's id."""
    return store.enqueue(functions.job(task, *args, **options), authority=SYSTEM).id


def state(store: MemoryRecord, job_id: int) -> str:
    """Where a job stands."""
    job = store.job(authority=SYSTEM, job_id=job_id)
    assert job is not None
    return str(job.state)


@pytest.mark.requirement("R2", "N3")
def test_it_runs_functions_and_coroutines_until_the_queues_are_empty(
    store: MemoryRecord, functions: Functions, make: Make
) -> None:
    ids = [put(store, functions, "sum", n, 1) for n in range(50)]
    ids += [put(store, functions, "twice", n) for n in range(50)]
    [told, failed, late] = [put(store, functions, "tell"), put(store, functions, "fail"), 0]
    late = put(store, functions, "sum", 1, 2, queue="other")
    with make(threads=4) as worker:
        assert worker.drain(LONG)
        assert (worker.count, worker.active, worker.stopped, worker.paused) == (0, 0, False, False)
        results = [store.job(authority=SYSTEM, job_id=job_id) for job_id in ids]
        assert [job.result for job in results if job] == [
            *[str(n + 1) for n in range(50)],
            *[str(2 * n) for n in range(50)],
        ]
        assert [event.kind for event in store.events(authority=SYSTEM, job_id=told)] == ["event"]
        assert [state(store, one) for one in (told, failed, late)] == ["completed", "retryable", "available"]
        # It goes on.
        again = put(store, functions, "sum", 1, 1)
        assert worker.drain(LONG)
        assert state(store, again) == "completed"
    assert worker.stopped


@pytest.mark.requirement("R2")
def test_while_it_is_paused_it_claims_nothing_and_what_runs_goes_on(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    worker = make(threads=2)
    worker.start()
    worker.start()  # it works already
    running = put(store, functions, "stand")
    gate.entered()
    assert (worker.count, worker.active) == (1, 1)
    worker.pause()
    assert worker.paused
    waiting = put(store, functions, "sum", 1, 2)
    gate.open.set()
    wait_for(lambda: state(store, running) == "completed", seconds=LONG)
    wait_for(lambda: worker.count == 0, seconds=LONG)
    assert not worker.drain(0.2)
    assert state(store, waiting) == "available"
    worker.resume()
    wait_for(lambda: state(store, waiting) == "completed", seconds=LONG)


@pytest.mark.requirement("R2", "L26", "N11", "N12")
@pytest.mark.parametrize("task", ["listen", "listen in a coroutine"])
def test_stop_sets_the_tokens_and_gives_back_what_ends_because_of_them(
    task: str, store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    job_id = put(store, functions, task)
    worker = make()
    worker.start()
    gate.entered()
    assert worker.stop(LONG)
    assert gate.causes == ["shutdown"]
    job = store.job(authority=SYSTEM, job_id=job_id)
    assert job is not None
    assert (job.state, job.failures, job.losses) == (State.AVAILABLE, 0, 0)
    assert (worker.stopped, worker.count, worker.active) == (True, 0, 0)
    assert worker.stop()
    # Stopped is not ended.
    gate.causes.clear()
    worker.start()
    gate.entered()
    assert worker.stop(LONG)


@pytest.mark.requirement("R2", "L26", "C3")
@pytest.mark.parametrize("order", ["drain", "stop"])
def test_it_obeys_what_is_ordered_of_it_with_the_next_heartbeat(
    order: str,
    store: MemoryRecord,
    functions: Functions,
    make: Make,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job_id = put(store, functions, "listen")
    worker = make(heartbeat_seconds=0.05)
    worker.start()
    gate.entered()
    told: list[WorkerStatus] = []

    def heartbeat(status: WorkerStatus, **_: Any) -> Known:
        told.append(status)
        return Known(order)

    monkeypatch.setattr(store, "worker_heartbeat", heartbeat)
    wait_for(lambda: worker.stopped and worker.count == 0, seconds=LONG)
    assert gate.causes == ["shutdown"]
    assert state(store, job_id) == "available"
    wait_for(lambda: told[-1].state == "stopped", seconds=LONG)
    assert told[0].memory_kb
    assert told[0].cpu_ms is not None
    # Its program may begin anew.
    monkeypatch.undo()
    assert worker.stop(LONG)
    worker.start()
    gate.entered()
    assert worker.stop(LONG)


@pytest.mark.requirement("R2", "N12", "N2", "N14")
def test_a_run_that_outlives_the_wait_keeps_its_lease_and_is_reported_when_it_ends(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    job_id = put(store, functions, "stand")
    worker = make(lease_seconds=6.0, heartbeat_seconds=0.05)
    worker.start()
    gate.entered()
    before = store.job(authority=SYSTEM, job_id=job_id)
    assert before is not None
    assert not worker.stop(0)
    assert (worker.stopped, worker.active, worker.count) == (True, 1, 1)
    with pytest.raises(WorkerEnded, match="has not ended"):
        worker.start()
    # It is heartbeaten: the lease that it had would be over, and it is not.
    store.later(4)
    _renewed(store, job_id)
    store.later(4)
    with make() as other:
        assert other.drain(LONG)
        assert store.reap(authority=SYSTEM) == []
        assert state(store, job_id) == "running"
    gate.open.set()
    assert worker.stop(LONG)
    job = store.job(authority=SYSTEM, job_id=job_id)
    assert job is not None
    assert (job.state, job.result, job.fence) == (State.COMPLETED, '"through"', 1)


def _renewed(store: MemoryRecord, job_id: int) -> None:
    """Wait for a heartbeat."""

    def left() -> bool:
        job = store.job(authority=SYSTEM, job_id=job_id)
        return job is not None and (job.lease_seconds_left or 0) > 5

    wait_for(left, seconds=LONG)


@pytest.mark.requirement("R2")
def test_clear_gives_back_what_has_not_begun(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    running, waiting = put(store, functions, "stand"), put(store, functions, "stand")
    worker = make(threads=1, prefetch=1)
    worker.start()
    gate.entered()
    wait_for(lambda: (worker.count, worker.active) == (2, 1), seconds=LONG)
    worker.pause()
    worker.clear()
    wait_for(lambda: state(store, waiting) == "available", seconds=LONG)
    assert (state(store, running), worker.active) == ("running", 1)
    [attempt] = store.attempts(authority=SYSTEM, job_id=waiting)
    assert (attempt.outcome, attempt.error_code) == ("released", "not_started")
    gate.open.set()


@pytest.mark.requirement("R2")
def test_abort_is_for_good_and_waits_for_nothing(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    listening, standing = put(store, functions, "listen"), put(store, functions, "stand")
    worker = make()
    worker.start()
    gate.entered(2)
    worker.abort()
    assert worker.stopped
    wait_for(lambda: state(store, listening) == "available", seconds=LONG)
    assert state(store, standing) == "running"
    with pytest.raises(WorkerEnded, match="make a new one"):
        worker.start()
    assert not worker.drain(0)
    gate.open.set()
    assert worker.destroy(LONG)
    assert worker.destroy()
    assert state(store, standing) == "completed"


@pytest.mark.requirement("R2")
def test_what_never_started_can_be_ended(make: Make) -> None:
    worker = make()
    assert (worker.count, worker.active, worker.stopped, worker.paused) == (0, 0, True, False)
    worker.clear()
    worker.pause()
    worker.resume()
    assert worker.stop()
    assert not worker.drain(0)
    assert worker.destroy()
    worker.abort()
    with pytest.raises(WorkerEnded):
        worker.start()


@pytest.mark.requirement("R2", "N2")
def test_workers_of_one_store_share_its_jobs_and_stopping_one_disturbs_no_other(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    one, other = make(threads=1), make(threads=1)
    one.start()
    other.start()
    ids = [put(store, functions, "stand") for _ in range(2)]
    gate.entered(2)
    assert (one.active, other.active) == (1, 1)
    one.stop(0)
    ids.append(put(store, functions, "sum", 1, 2))
    gate.open.set()
    wait_for(lambda: [state(store, job_id) for job_id in ids] == ["completed"] * 3, seconds=LONG)
    assert not other.stopped
    assert one.stop(LONG)


@pytest.mark.requirement("R2", "N11")
def test_a_cancellation_reaches_the_run_at_once(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    job_id = put(store, functions, "listen")
    # The next heartbeat would come in an hour.
    with make(lease_seconds=18_000.0, heartbeat_seconds=3600.0):
        gate.entered()
        store.cancel([job_id], authority=SYSTEM)
        wait_for(lambda: state(store, job_id) == "cancelled", seconds=LONG)
    assert gate.causes == ["user"]


@pytest.mark.requirement("R2", "N13", "R8")
def test_a_run_that_takes_too_long_gets_its_token_and_has_failed(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    job_id = put(store, functions, "listen shortly")
    with make() as worker:
        wait_for(lambda: state(store, job_id) == "retryable", seconds=LONG)
        assert worker.count == 0
    job = store.job(authority=SYSTEM, job_id=job_id)
    assert job is not None
    assert (gate.causes, job.error_code, job.failures) == (["timeout"], "timeout", 1)


@pytest.mark.requirement("R2", "L4", "N11")
def test_who_has_lost_the_lease_hears_of_it_and_writes_nothing(
    store: MemoryRecord, functions: Functions, make: Make, gate: Gate
) -> None:
    job_id = put(store, functions, "listen")
    with make(heartbeat_seconds=0.05) as worker:
        gate.entered()
        worker.pause()
        with store._turn:  # no heartbeat comes in between
            store.later(31)
            assert store.reap(authority=SYSTEM) == [job_id]
        wait_for(lambda: worker.count == 0, seconds=LONG)
    assert gate.causes == ["lease_lost"]
    job = store.job(authority=SYSTEM, job_id=job_id)
    assert job is not None
    assert (job.losses, job.failures, job.fence) == (1, 0, 1)
    attempts = store.attempts(authority=SYSTEM, job_id=job_id)
    assert [attempt.error_code for attempt in attempts] == ["lease_expired"]


@pytest.mark.requirement("R2", "R7", "R4")
def test_what_it_cannot_run_is_left_to_others_or_held(
    store: MemoryRecord, functions: Functions, make: Make
) -> None:
    wrong = put(store, functions, "sum", 1)
    elsewhere = Functions()
    elsewhere.add(fail, name="elsewhere")
    unknown = store.enqueue(elsewhere.job("elsewhere"), authority=SYSTEM).id
    with make() as worker:
        assert worker.drain(LONG)
    assert (state(store, wrong), state(store, unknown)) == ("quarantined", "available")


class Slow(MemoryClient):
    """A client of a record that takes its time to keep completions."""

    def __init__(self, store: MemoryRecord) -> None:
        super().__init__(store)
        self.answers = threading.Event()
        self.heard: list[Heartbeat] = []

    async def complete(self, items: Sequence[tuple[Lease, Done]]) -> Settlement:
        """Once it may."""
        while not self.answers.is_set():
            await asyncio.sleep(0.005)
        return await super().complete(items)

    async def heartbeat(self, leases: Sequence[Lease]) -> Heartbeat:
        """Keep what it says, too."""
        self.heard.append(await super().heartbeat(leases))
        return self.heard[-1]


@pytest.mark.requirement("R2", "N11")
def test_a_cancellation_of_what_has_ended_does_not_reach_the_run_in_its_place(
    store: MemoryRecord, functions: Functions, gate: Gate, make: Make
) -> None:
    causes: list[str | None] = []

    def look(context: Any) -> None:
        gate.stand(context)
        causes.append(context.cancelled)

    functions.add(look, name="look", takes_context=True)
    client = Slow(store)
    with make(client=client, threads=1, prefetch=1, heartbeat_seconds=0.05):
        ended = put(store, functions, "sum", 1, 2)
        wait_for(lambda: state(store, ended) == "running", seconds=LONG)
        other = put(store, functions, "look")
        gate.entered()
        store.cancel([ended], authority=SYSTEM)
        # What the last one said has been heard once there is another after it.
        wait_for(lambda: sum(bool(answer.cancelled) for answer in client.heard) >= 2, seconds=LONG)
        client.answers.set()
        gate.open.set()
        wait_for(lambda: state(store, other) == "completed", seconds=LONG)
    assert (causes, state(store, ended)) == ([None], "completed")


class Gone(MemoryClient):
    """A client of a record that cannot be reached."""

    async def open(self) -> None:
        """It cannot."""
        raise StoreUnavailable("nobody there")


@pytest.mark.requirement("R2", "L30")
def test_where_the_record_cannot_be_reached_start_says_so(store: MemoryRecord, make: Make) -> None:
    worker = make(client=Gone(store))
    with pytest.raises(StoreUnavailable):
        worker.start()
    assert worker.stopped
    assert worker.stop(LONG)


@pytest.mark.requirement("R2")
@pytest.mark.parametrize(
    "how",
    [
        {"queues": ()},
        {"queues": "default"},
        {"threads": 0},
        {"prefetch": -1},
        {"heartbeat_seconds": 0},
        {"lease_seconds": 10, "heartbeat_seconds": 5},
        {"poll_seconds": 0},
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(how: dict[str, Any], make: Make) -> None:
    with pytest.raises(ValueError, match=r"queues|threads|lease_seconds|poll_seconds"):
        make(**how)


@pytest.mark.requirement("R2", "N2", "C8")
def test_it_runs_the_tasks_of_a_django_project_on_its_record(config: KeeperConfig) -> None:
    others = connected()
    results = [tasks.ask_the_database.using(authority=SYSTEM).enqueue(n) for n in range(8)]
    results += [tasks.ask_in_a_coroutine.using(authority=SYSTEM).enqueue(n) for n in range(8)]
    worker = Worker(LocalClient(config), DjangoHandlers(), wakeups=LocalWakeups(config.dsn), threads=2)
    with worker:
        assert worker.drain(LONG)
        for result in results:
            result.refresh()
        assert [result.return_value for result in results] == [*range(1, 9), *range(1, 9)]
        assert worker.stop(LONG)
        # The same client on another event loop.
        worker.start()
        again = tasks.ask_the_database.using(authority=SYSTEM).enqueue(41)
        wait_for(lambda: again.refresh() or again.status == "SUCCESSFUL", seconds=LONG)
        assert again.return_value == 42
    # No connection is left behind.
    wait_for(lambda: connected() <= others, seconds=LONG)


def connected() -> set[int]:
    """Who is connected to this database but this test itself: processes of PostgreSQL."""
    clients = "datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"
    return {pid for (pid,) in rows(f"select pid from pg_stat_activity where {clients}")}


@pytest.fixture
def one_at_a_time() -> Iterator[None]:
    """The settings limit the queue."""
    with override_settings(SHIFTBOSS={**settings.SHIFTBOSS, "QUEUES": {"default": {"concurrency": 1}}}):
        conf.get.cache_clear()
        yield
    conf.get.cache_clear()


@pytest.mark.requirement("R2", "N2")
@pytest.mark.usefixtures("config", "one_at_a_time")
def test_the_settings_say_how_a_worker_of_theirs_works() -> None:
    worker = worker_of_settings(threads=2)
    result = tasks.ask_the_database.using(authority=SYSTEM).enqueue(1)
    with worker:
        assert worker.drain(LONG)
    result.refresh()
    assert result.return_value == 2
    assert scalar("select concurrency from shiftboss_queue where name = 'default'") == 1
    with pytest.raises(conf.ConfigError, match="no pool 'nobody'"):
        worker_of_settings("nobody")
