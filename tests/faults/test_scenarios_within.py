"""What a worker decides in trouble, by itself: who is blamed, from when a lease counts, who goes first."""

import asyncio
import json
import signal
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shiftboss.queue.contract import Claimed, Heartbeat, Known, Lease
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Failed, Lost, Released
from shiftboss.queue.runtime import deaths, executor_process
from shiftboss.queue.runtime.board import DeadlineBoard
from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.context import Cause, Token
from shiftboss.queue.runtime.dispatcher import Dispatcher
from shiftboss.queue.runtime.executor_process import Death, ExecutorProcess
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.keeper import Keeper
from shiftboss.queue.runtime.ports import boot_clock
from shiftboss.queue.runtime.pulse import Pulse
from tests.clients.conftest import keeper_config

LEASE_SECONDS = 30.0


@pytest.fixture
def config(tmp_path: Path) -> KeeperConfig:
    """Of a worker that starts nothing."""
    return replace(keeper_config(""), run_folder=str(tmp_path))


def jobs(number: int, *, suspect: bool = False) -> list[Claimed]:
    """So many jobs as they are claimed."""
    now = datetime.now(UTC)
    return [Claimed(one, 1, "default", "task", "{}", 0, now, 0, 0, suspect) for one in range(number)]


class Record:
    """The client of a keeper: it answers heartbeats late, or not at all."""

    complete = fail = release = snooze = discard = quarantine = reap_own = None

    def __init__(self) -> None:
        self.now = 100.0
        self.late_seconds = 0.0
        self.away = False

    async def heartbeat(self, leases: list[Lease]) -> Heartbeat:
        """All are renewed."""
        self.now += self.late_seconds
        if self.away:
            raise StoreUnavailable("it does not answer")
        return Heartbeat(renewed=frozenset(leases), busy=frozenset(), lost=frozenset(), cancelled={})

    async def worker_heartbeat(self, status: Any) -> Known:
        """The worker is known."""
        return Known()


class Nobody:
    """A keeper's children: there are none."""

    executors: tuple[()] = ()


def pulse(record: Record, holdings: Holdings) -> Pulse:
    """A heart that beats at once, and by the record's clock."""
    client: Any = record
    children: Any = Nobody()

    async def register(tasks: Any) -> None:
        raise AssertionError("the record knows the worker")

    return Pulse(
        period_seconds=5.0,
        client=client,
        clock=lambda: record.now,
        holdings=holdings,
        children=children,
        register=register,
        status=lambda lag_ms: Any,  # type: ignore[arg-type, return-value]
        cancel=lambda held, cause: None,
        ordered=lambda word: None,
    )


@pytest.mark.requirement("L2", "N9", "L30")
def test_a_lease_is_counted_from_the_sending_of_its_renewal() -> None:
    """The record has renewed it at some moment before its answer: nobody knows when."""
    record = Record()
    holdings = Holdings(LEASE_SECONDS)
    [held] = holdings.claimed(jobs(1), 90.0)
    assert held.expires_at == 90.0 + LEASE_SECONDS
    record.late_seconds = 4.0
    asyncio.run(pulse(record, holdings).run_once())
    assert (held.renewed_at, held.expires_at) == (100.0, 100.0 + LEASE_SECONDS)


@pytest.mark.requirement("L2", "N14", "L30")
def test_a_step_of_the_hosts_clock_moves_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    before = boot_clock()
    monkeypatch.setattr(time, "time", lambda: before - 3600)
    assert before <= boot_clock() < before + 600
    monkeypatch.undo()
    # It is no time of day: it counts from the start of the host, or of its clock.
    assert boot_clock() < time.time() - 3600


@pytest.mark.requirement("L30", "N14")
def test_while_heartbeats_fail_nothing_is_claimed(config: KeeperConfig) -> None:
    record: Any = Record()
    keeper = Keeper(config, record, None)  # type: ignore[arg-type]
    keeper._worker_id = 1
    beat = keeper._pulse
    keeper._holdings.claimed(jobs(1), boot_clock() - 10)
    assert not keeper._holds_back()
    record.away = True
    with pytest.raises(StoreUnavailable):
        asyncio.run(beat.run_once())
    assert keeper._holds_back()
    record.away = False
    asyncio.run(beat.run_once())
    assert not keeper._holds_back()


@pytest.mark.requirement("L30", "N14")
@pytest.mark.parametrize("what", ["_reporter", "_notebook"])
def test_while_the_record_takes_nothing_nothing_is_claimed(what: str, config: KeeperConfig) -> None:
    record: Any = Record()
    keeper = Keeper(config, record, None)  # type: ignore[arg-type]
    getattr(keeper, what).trouble = True
    assert keeper._holds_back()
    getattr(keeper, what).trouble = False
    assert not keeper._holds_back()


@pytest.mark.requirement("N12", "L26")
def test_a_drain_sets_no_token_before_its_fetching_has_stopped(
    config: KeeperConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a claim under way brings would else run beside the drain, or be left behind."""
    record: Any = Record()
    happened: list[str] = []
    drain = Children.drain

    def drained(children: Children) -> None:
        happened.append("tokens")
        drain(children)

    monkeypatch.setattr(Children, "drain", drained)

    async def fetch() -> None:
        for _ in range(100):
            await asyncio.sleep(0.001)
        happened.append("fetched")

    async def work() -> None:
        keeper = Keeper(config, record, None)  # type: ignore[arg-type]
        keeper._stop.set()
        await keeper._drain(asyncio.create_task(fetch()))

    asyncio.run(work())
    assert happened == ["fetched", "tokens"]


def held_by(number: int, cause: Cause | None = None) -> tuple[Held, ...]:
    """So many leases; the ends of their runs have been asked for because of this, in vain."""
    held = Holdings(LEASE_SECONDS).claimed(jobs(number), 100.0)
    for one in held:
        one.cause, one.deaf = cause, cause is not None
    return tuple(held)


def death(**facts: Any) -> Death:
    """An executor was killed."""
    nothing: dict[str, Any] = {"not_started": (), "started": (), "ended": ()}
    was = {"exit_code": -11, "was_ready": True, "past_deadline": False, "put_down": False}
    return Death(**{**was, **nothing, **facts})


def outcomes(of: Death, *, draining: bool = False) -> list[Any]:
    """What its jobs come to."""
    found = deaths.settle(of, draining=draining, now=110.0, backoff_seconds=lambda held: 5.0)
    return [outcome for _, outcome in found]


@pytest.mark.requirement("L29", "R6")
def test_a_death_is_blamed_on_a_job_that_ran_alone_and_on_nobody_else() -> None:
    [alone] = outcomes(death(started=held_by(1)))
    assert isinstance(alone, Lost)
    assert (alone.alone, alone.suspect, alone.message) == (True, True, "the executor was killed by SIGSEGV")
    assert json.loads(alone.evidence)["signal"] == signal.SIGSEGV
    several = outcomes(death(started=held_by(3)))
    assert {(one.alone, one.suspect) for one in several} == {(False, True)}
    # One whose end was on its way may have been the one, as well as the one that still ran.
    mixed = outcomes(death(started=held_by(1), ended=held_by(1)))
    assert {(one.alone, one.suspect) for one in mixed} == {(False, True)}
    # What had not begun has nothing to do with it.
    waiting, ran = outcomes(death(not_started=held_by(1), started=held_by(1)))
    assert (type(waiting), waiting.code, ran.alone) == (Released, "not_started", True)
    # Whoever killed it, it was not the job.
    for cause in ({"past_deadline": True}, {"put_down": True}):
        [one] = outcomes(death(started=held_by(1), **cause))
        assert (one.alone, one.suspect) == (False, False)
    drained = outcomes(death(started=held_by(2)), draining=True)
    assert [(type(one), one.code) for one in drained] == [(Released, "shutdown")] * 2


@pytest.mark.requirement("N13", "R5")
def test_only_a_run_that_was_too_long_has_failed_when_its_keeper_ends_its_process() -> None:
    late, asked, neighbour = held_by(1, Cause.TIMEOUT), held_by(1, Cause.USER), held_by(1)
    failed, released, lost = outcomes(death(put_down=True, started=(*late, *asked, *neighbour)))
    assert isinstance(failed, Failed)
    assert (failed.code, failed.backoff_seconds) == ("timeout", 5.0)
    assert (type(released), released.code) == (Released, "user")
    assert (lost.alone, lost.suspect) == (False, False)


class Place:
    """An executor as far as a dispatcher cares."""

    def __init__(self, threads: int = 4) -> None:
        self.ready, self.reserved, self.threads = True, False, threads
        self.in_hand: dict[int, Held] = {}

    def run(self, held: list[Held]) -> None:
        """Take them."""
        self.in_hand.update((len(self.in_hand) + number, one) for number, one in enumerate(held))


@pytest.mark.requirement("L29", "R6")
def test_a_suspect_gets_an_executor_to_itself() -> None:
    dispatcher = Dispatcher(clock=lambda: 100.0, isolated=0)
    executors: Any = [Place()]
    dispatcher.add(Holdings(LEASE_SECONDS).claimed([*jobs(1, suspect=True), *jobs(3)[1:]], 100.0))
    dispatcher.deal(executors)
    assert [one.job.suspect for one in executors[0].in_hand.values()] == [True]
    dispatcher.deal(executors)
    assert len(executors[0].in_hand) == 1


@pytest.mark.requirement("R6", "L30")
def test_an_executor_that_does_not_get_ready_is_ended(
    config: KeeperConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its imports hang, say. Its death is told like any other, so that another takes its place."""
    monkeypatch.setattr(executor_process, "START_SECONDS", 0.05)
    hangs = replace(config, executor_argv=(sys.executable, "-c", "import time; time.sleep(600)"))
    deaths_told: list[Death] = []

    async def work() -> None:
        executor = ExecutorProcess(
            place=0,
            solo=False,
            mark="none",
            config=hangs,
            deadlines=DeadlineBoard(),
            clock=boot_clock,
            on_message=lambda *_: None,
            on_death=lambda _, death: deaths_told.append(death),
        )
        await executor.start()
        await asyncio.wait_for(executor.gone(), 60)

    asyncio.run(work())
    [told] = deaths_told
    assert (told.exit_code, told.was_ready) == (-signal.SIGKILL, False)


@pytest.mark.requirement("N11")
def test_the_first_cause_of_a_token_wins() -> None:
    token = Token()
    for cause in (Cause.USER, Cause.SHUTDOWN, Cause.LEASE_LOST):
        token.set(cause)
    assert token.cause is Cause.USER
