"""A worker's way to the record over its own connections."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async

from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection, LocalClient, LocalWakeups, connect
from shiftboss.queue.contract import Lease, Mark, Registration, WorkerStatus
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Discarded, Snoozed
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.ports import CANCEL
from shiftboss.queue.store import operate
from shiftboss.queue.store.enqueue import enqueue
from shiftboss.queue.store.schema import check_schema
from shiftboss.queue.store.statement import Statement, Verb
from tests.clients.conftest import keeper_config
from tests.store import making
from tests.store.making import DONE, FAILED, LOST, QUARANTINED, RELEASED, TASK, scalar

Loop = Callable[[Any], Any]
SYSTEM = System()

REGISTRATION = Registration(
    pool="default",
    host="web-1",
    pid=1,
    code_version=None,
    queues=("default",),
    processes=1,
    threads=8,
    lease_seconds=30,
    heartbeat_seconds=5,
)


@asynccontextmanager
async def opened(config: KeeperConfig) -> AsyncIterator[LocalClient]:
    """A client with a registered worker."""
    client = LocalClient(config)
    try:
        await client.open()
        await client.register(REGISTRATION, [TASK])
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def one(dsn: str) -> AsyncIterator[Connection]:
    """One connection."""
    connection = Connection(dsn, name="test")
    try:
        yield connection
    finally:
        await connection.close()


async def until(condition: Callable[[], bool], *, seconds: float = 10) -> None:
    """Wait for a fact while the event loop goes on."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.requirement("L1", "L2", "L3", "S6")
def test_a_worker_does_its_whole_round_through_the_port(config: KeeperConfig, loop: Loop) -> None:
    making.enqueued(6)
    making.enqueued(task="shop.tasks.unknown")
    making.enqueued(due_in=-1)

    async def round() -> list[Lease]:
        async with opened(config) as client:
            status = WorkerStatus(state="running", in_use=5, idle=False, tasks=(TASK,), lag_ms=1, losses=0)
            assert await client.worker_heartbeat(status)
            assert await client.waiting_tasks([TASK]) == ["shop.tasks.unknown"]
            first = await client.claim("default", [TASK], 1, None)
            mark = Mark(first[0].priority, first[0].due_at, first[0].id)
            rest = await client.claim("default", [TASK], 10, mark)
            leases = [job.lease for job in rest]
            assert (await client.heartbeat(leases)).renewed == set(leases)
            for write, held, outcome in (
                (client.complete, leases[0], DONE),
                (client.fail, leases[1], FAILED),
                (client.release, leases[2], RELEASED),
                (client.quarantine, leases[3], QUARANTINED),
                (client.reap_own, leases[4], LOST),
                (client.snooze, leases[5], Snoozed(60.0, 12)),
            ):
                assert (await write([(held, outcome)])).settled == {held}
                foreign = Lease(held.job_id, 99)
                assert (await write([(foreign, outcome)])).lost == {foreign}
            settled = await client.discard([(first[0].lease, Discarded("no such order", 12))])
            assert settled.settled == {first[0].lease}
            assert await client.stage() == 1
            assert await client.reap() == 0
            return [*leases, first[0].lease]

    leases = loop(round())
    states = ["completed", "retryable", "available", "quarantined", "available", "scheduled", "discarded"]
    assert [making.state(held.job_id) for held in leases] == states
    assert scalar("select distinct worker_id from shiftboss_attempt") == scalar("select id from shiftboss_worker")


@pytest.mark.requirement("N11")
def test_a_heartbeat_tells_whose_end_was_asked_for(config: KeeperConfig, loop: Loop) -> None:
    making.enqueued(2)

    async def ask() -> tuple[Lease, dict[Lease, str]]:
        async with opened(config) as client:
            one, other = [job.lease for job in await client.claim("default", [TASK], 2, None)]
            await sync_to_async(making.run)(operate.cancel([one.job_id], authority=SYSTEM))
            answer = await client.heartbeat([one, other])
            assert answer.renewed == {one, other}
            return one, answer.cancelled

    one, cancelled = loop(ask())
    assert cancelled == {one: "user"}


@pytest.mark.requirement("S14", "N2")
def test_connect_makes_a_client_and_its_wakeups(config: KeeperConfig) -> None:
    client, wakeups = connect(config)
    assert isinstance(client, LocalClient)
    assert isinstance(wakeups, LocalWakeups)


SHOW = "select current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('timezone')"


@pytest.mark.requirement("L5")
def test_a_connection_has_a_keepers_settings(config: KeeperConfig, loop: Loop) -> None:
    async def ask() -> Any:
        async with one(config.dsn) as connection:
            raw = await connection.opened()
            return await (await raw.execute(SHOW)).fetchone(), raw.autocommit

    assert loop(ask()) == (("1s", "30s", "UTC"), True)


@pytest.mark.requirement("S7", "L24")
@pytest.mark.parametrize("address", ["host=127.0.0.1 port=1", "host=/nowhere port=1"])
def test_a_record_that_cannot_be_reached_is_told_without_the_password(address: str, loop: Loop) -> None:
    client = LocalClient(keeper_config(f"{address} user=kim password=geheim dbname=x"))
    with pytest.raises(StoreUnavailable) as refused:
        loop(client.open())
    assert "geheim" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert str(refused.value)


@pytest.mark.requirement("L30", "N14")
@pytest.mark.requirement("L30", "N14")
def test_an_attempt_to_connect_that_was_given_up_is_no_client_that_never_asks(loop: Loop) -> None:
    async def attempt(dsn: str) -> None:
        with pytest.raises(StoreUnavailable, match="timeout expired"):
            await Connection(dsn, name="test", statement_seconds=1.0).opened()

    gc.disable()  # nobody looks for cycles
    try:
        with socket.socket() as stands_still:
            stands_still.bind(("127.0.0.1", 0))
            stands_still.listen()
            stands_still.settimeout(20)
            loop(attempt(f"host=127.0.0.1 port={stands_still.getsockname()[1]} dbname=x user=x sslmode=disable"))
            client, _ = stands_still.accept()
            with client:
                client.settimeout(20)
                while client.recv(1000):
                    pass  # at its end it is gone
    finally:
        gc.enable()


def test_a_connection_that_broke_is_made_anew(config: KeeperConfig, loop: Loop) -> None:
    async def break_it() -> int:
        async with one(config.dsn) as connection:
            raw = await connection.opened()
            async with await psycopg.AsyncConnection.connect(config.dsn, autocommit=True) as other:
                await other.execute("select pg_terminate_backend(%s)", [raw.info.backend_pid])
            with pytest.raises(StoreUnavailable):
                await connection.run(check_schema())
            return (await connection.run(enqueue(making.new_job(), authority=SYSTEM))).id

    assert loop(break_it()) == scalar("select id from shiftboss_job")


@pytest.mark.requirement("L30")
def test_an_error_of_one_verb_leaves_the_connection_as_it_was(config: KeeperConfig, loop: Loop) -> None:
    async def fail_once() -> bool:
        async with one(config.dsn) as connection:
            before = await connection.opened()
            with pytest.raises(psycopg.DataError):
                await connection.run(enqueue(making.new_job(args="{"), authority=SYSTEM))
            await connection.run(check_schema())
            return before is await connection.opened()

    assert loop(fail_once())


TODAY = Statement("today", lambda day: day)


def _today() -> Verb[Any]:
    [day] = yield TODAY.call()
    return day


@pytest.mark.requirement("L30")
def test_a_question_that_was_given_up_leaves_no_answer_for_the_next(config: KeeperConfig, loop: Loop) -> None:
    async def give_up() -> Any:
        async with one(config.dsn) as holder, one(config.dsn) as keeper:
            locks = await holder.opened()
            await locks.execute("begin")
            await locks.execute("lock table shiftboss_job")
            pid = (await keeper.opened()).info.backend_pid
            asked = asyncio.create_task(keeper.run(making.claim(1)))
            await _waits_for_a_lock(config.dsn, pid)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            return await keeper.run(_today())

    assert loop(give_up()) == scalar("select (clock_timestamp() at time zone 'UTC')::date")


async def _waits_for_a_lock(dsn: str, pid: int) -> None:
    question = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
    async with one(dsn) as watcher, asyncio.timeout(10):
        raw = await watcher.opened()
        while await (await raw.execute(question, [pid])).fetchone() != (True,):
            await asyncio.sleep(0.005)


@pytest.mark.requirement("L1")
def test_verbs_take_turns_on_one_connection(config: KeeperConfig, loop: Loop) -> None:
    async def all_at_once() -> list[Any]:
        async with one(config.dsn) as connection:
            return await asyncio.gather(
                *[connection.run(enqueue(making.new_job(), authority=SYSTEM)) for _ in range(20)]
            )

    assert len({enqueued.id for enqueued in loop(all_at_once())}) == 20


WORKER_ID = 17


@asynccontextmanager
async def listening(
    config: KeeperConfig, orders: list[str] | None = None
) -> AsyncIterator[list[tuple[str | None, int]]]:
    """The hints that are heard while the block runs; orders to worker 17 go into `orders`."""
    heard: list[tuple[str | None, int]] = []
    orders = [] if orders is None else orders
    task = asyncio.create_task(
        LocalWakeups(config.dsn).listen(
            WORKER_ID, woken=lambda queue, priority: heard.append((queue, priority)), ordered=orders.append
        )
    )
    try:
        yield heard
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# Whoever begins to listen has missed what came before.
ANYTHING = (None, 0)
LISTENS = """
select pid from pg_stat_activity
where application_name = 'shiftboss listen' and query like 'listen shiftboss_worker%%' and state = 'idle'
"""


async def _listener() -> int:
    ask: Callable[[], Awaitable[list[Any]]] = sync_to_async(lambda: making.rows(LISTENS))
    async with asyncio.timeout(10):
        while not (found := await ask()):
            await asyncio.sleep(0.005)
    return int(found[0][0])


@pytest.mark.requirement("C1", "P9")
def test_a_notification_is_handed_on_with_queue_and_priority(config: KeeperConfig, loop: Loop) -> None:
    making.a_worker("a queue with spaces", idle=True)

    async def hear() -> list[tuple[str | None, int]]:
        async with listening(config) as heard:
            await _listener()
            await sync_to_async(making.enqueued)(queue="a queue with spaces", priority=-7)
            await until(lambda: len(heard) == 2)
            return heard

    assert loop(hear()) == [ANYTHING, ("a queue with spaces", -7)]


@pytest.mark.requirement("P9", "L30")
def test_whoever_listens_listens_again_after_an_outage(config: KeeperConfig, loop: Loop) -> None:
    making.a_worker("mail", idle=True)

    async def hear() -> list[tuple[str | None, int]]:
        async with listening(config) as heard:
            pid = await _listener()
            await sync_to_async(making.execute)("select pg_terminate_backend(%s)", pid)
            await sync_to_async(_gone)(pid)
            assert await _listener() != pid
            await sync_to_async(making.enqueued)(queue="mail")
            await until(lambda: len(heard) == 3)
            return heard

    assert loop(hear()) == [ANYTHING, ANYTHING, ("mail", 0)]


@pytest.mark.requirement("N11")
def test_orders_to_this_worker_are_heard_and_those_to_others_are_not(config: KeeperConfig, loop: Loop) -> None:
    async def hear() -> tuple[list[str], list[tuple[str | None, int]]]:
        orders: list[str] = []
        async with listening(config, orders) as heard:
            await _listener()
            for channel, word in (
                ("worker_1", "cancel"),
                ("worker_17", "cancel"),
                ("worker_17", "of later versions"),
            ):
                await sync_to_async(making.rows)("select pg_notify(%s, %s)", f"shiftboss_{channel}", word)
            await until(lambda: len(orders) == 3)
            return orders, heard

    # Whoever begins to listen may have missed an order, too.
    assert loop(hear()) == ([CANCEL, CANCEL, "of later versions"], [ANYTHING])


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("payload", ["", "later words", "7", "x mail"])
def test_a_notification_in_words_of_another_version_may_mean_any_queue(
    payload: str, config: KeeperConfig, loop: Loop
) -> None:
    async def hear() -> list[tuple[str | None, int]]:
        async with listening(config) as heard:
            await _listener()
            await sync_to_async(making.rows)("select pg_notify('shiftboss_available', %s)", payload)
            await until(lambda: len(heard) == 2)
            return heard

    assert loop(hear()) == [ANYTHING, (None, 7 if payload == "7" else 0)]


def _gone(pid: int) -> None:
    making.wait_for(lambda: not making.rows("select from pg_stat_activity where pid = %s", pid), seconds=20)
