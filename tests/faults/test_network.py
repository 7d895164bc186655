"""A network between workers and PostgreSQL that is slow, breaks, or says nothing any more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from shiftboss.queue.clients.local import Connection, LocalWakeups
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.states import State
from shiftboss.queue.store.schema import check_schema
from tests.faults.audit import audit
from tests.faults.proxy import Proxy
from tests.faults.witness import tasks
from tests.runtime.programs import House, Program, job, wait_for_state
from tests.store.making import address, scalar
from tests.waiting import wait_for

WITNESS = "tests.runtime,tests.faults.witness"
OURS = "select count(*) from pg_stat_activity where application_name like 'shiftboss %%'"


@pytest.fixture
def road(dsn: str) -> Iterator[Proxy]:
    """The way from workers to the test's database."""
    with Proxy(dsn).open() as road:
        yield road
    wait_for(lambda: not scalar(OURS), seconds=20)


@pytest.fixture
def house(road: Proxy, tmp_path: Path) -> Iterator[House]:
    """Programs at the other end of the road."""
    house = House(tmp_path, road.dsn)
    yield house
    road.lift()
    house.end()
    for log in sorted(tmp_path.glob("*.out")):
        print(f"--- {log.name}", *log.read_text().splitlines()[-40:], sep="\n")


def failed_beats(worker: Program) -> int:
    """How many of its heartbeats have had no answer."""
    return worker.log.read_text().count("loop='heartbeat'")


@pytest.mark.parametrize("how", ["blackhole", "to client", "to server"])
def test_a_connection_without_an_answer_is_given_up_and_the_next_one_is_new(road: Proxy, how: str) -> None:
    async def go() -> None:
        connection = Connection(road.dsn, name="test", statement_seconds=0.4)
        try:
            await connection.run(check_schema())
            if how == "blackhole":
                road.blackhole()
            else:
                assert road.half_open("shiftboss test", direction=how) == 1
            with pytest.raises(StoreUnavailable, match=r"no answer within 0\.5 s"):
                await asyncio.wait_for(connection.run(check_schema()), 20)
            road.lift()
            await connection.run(check_schema())
        finally:
            await connection.close()

    asyncio.run(go())


def test_a_listener_that_would_hear_nothing_any_more_notices_and_listens_anew(road: Proxy) -> None:
    async def go() -> None:
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        listening = asyncio.create_task(
            LocalWakeups(road.dsn, lease_seconds=1.2).listen(
                7, woken=lambda queue, _: heard.put_nowait(queue), ordered=lambda _: None
            )
        )
        try:
            assert await asyncio.wait_for(heard.get(), 20) is None
            for fault in (road.half_open, road.half_open, road.reset):
                assert await asyncio.to_thread(fault, "listen") == 1
                assert await asyncio.wait_for(heard.get(), 20) is None
            async with await psycopg.AsyncConnection.connect(address(), autocommit=True) as other:
                await other.execute("select pg_notify('shiftboss_available', '0 letters')")
            assert await asyncio.wait_for(heard.get(), 20) == "letters"
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    asyncio.run(go())


def test_a_running_job_keeps_its_lease_when_the_connection_of_its_heartbeats_is_half_open(
    road: Proxy, house: House
) -> None:
    worker = house.worker(apps=WITNESS, LEASE_SECONDS=6, HEARTBEAT_SECONDS=1)
    house.maintainer()
    one = tasks.work.enqueue(gate="go", seconds=600).id
    house.wait_for_lines("began", 1)
    for times in (1, 2):
        wait_for(lambda: road.half_open("shiftboss heartbeat"), seconds=20)
        wait_for(lambda n=times: failed_beats(worker) == n, seconds=20)
        beats = road.asked["heartbeat"]
        wait_for(lambda n=beats: road.asked["heartbeat"] > n + 1, seconds=20)  # the next follows an answer
    (house.folder / "go").touch()
    assert wait_for_state(one, State.COMPLETED).fence == 1
    assert audit(house.lines(), address(), [one]) == []


def test_no_job_is_begun_while_heartbeats_fail(road: Proxy, house: House) -> None:
    worker = house.worker(apps=WITNESS)
    road.blackhole("shiftboss heartbeat")
    wait_for(lambda: failed_beats(worker), seconds=60)
    one = tasks.work.enqueue().id
    failures = failed_beats(worker)
    wait_for(lambda: failed_beats(worker) > failures + 1, seconds=60)
    assert (job(one).state, job(one).fence) == (State.AVAILABLE, 0)
    road.lift()
    wait_for_state(one, State.COMPLETED)


def test_an_outcome_whose_commit_was_not_answered_is_sent_again_and_found_settled(
    road: Proxy, house: House
) -> None:
    house.worker(apps=WITNESS)
    house.maintainer()
    for verb in ("complete", "fail", "snooze"):
        road.lose_answer(verb)
    jobs = [kind.enqueue().id for kind in (tasks.work, tasks.fail_at_first, tasks.put_off_at_first)]
    for one in jobs:
        wait_for_state(one, State.COMPLETED, seconds=60)
    assert [job(one).fence for one in jobs] == [1, 2, 2]
    assert road.lost == {"complete": 1, "fail": 1, "snooze": 1}

    def claimed_unheard() -> bool:
        """Whether what got lost was the answer of the claim that took this job, not of one that found none."""
        road.lose_answer("claim")
        jobs.append(tasks.work.enqueue().id)
        return wait_for_state(jobs[-1], State.COMPLETED, seconds=60).fence == 2

    wait_for(claimed_unheard, seconds=60)
    assert [job(one).fence for one in jobs[3:-1]] == [1] * (len(jobs) - 4)
    assert scalar("select count(*) from shiftboss_event where kind = 'write_rejected'") == 0
    assert audit(house.lines(), address(), jobs) == []
