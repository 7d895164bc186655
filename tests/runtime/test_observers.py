"""Observers: what they hear, and that a worker suffers from none of them."""

import asyncio
import json
from typing import Any

import pytest
from django.db import connection, transaction

from shiftboss import conf, enqueue_many
from shiftboss.compat import task_enqueued, task_finished, task_started
from shiftboss.queue import observers
from shiftboss.queue.observation import Backlog
from shiftboss.queue.runtime.holdings import Holdings
from shiftboss.queue.runtime.observing import Observing
from shiftboss.queue.runtime.ports import boot_clock
from shiftboss.queue.states import State
from tests.clients.conftest import keeper_config
from tests.runtime import tasks
from tests.runtime.programs import House, totals, wait_for_state
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("R3")

HERE = "tests.runtime.observers."
EVERYTHING, THROWER = HERE + "Everything", HERE + "Thrower"
QUICK_STAGE = {"STAGE_SECONDS": 0.02, "BACKOFF_SECONDS": 0.01}


def heard(house: House) -> list[tuple[str, int, Any]]:
    """What observers kept: the word, their process, the facts."""
    path = house.folder / "observed"
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def words_of(house: House, job_id: str) -> list[str]:
    """What was told of a job, in order."""
    return [
        word for word, _, facts in heard(house) if isinstance(facts, dict) and facts.get("job_id") == int(job_id)
    ]


def facts_of(house: House, job_id: str, word: str) -> dict[str, Any]:
    """The facts that came with it, the first time."""
    return next(f for w, _, f in heard(house) if w == word and f["job_id"] == int(job_id))


def wait_until_told(house: House, job_id: str, word: str) -> None:
    wait_for(lambda: word in words_of(house, job_id), seconds=60)


def dropped() -> int:
    """What the workers say that no observer got."""
    with connection.cursor() as cursor:
        cursor.execute("select coalesce(sum(dropped), 0) from shiftboss_worker")
        return int(cursor.fetchone()[0])


def test_observers_hear_what_becomes_of_jobs_and_one_that_throws_harms_nothing(house: House) -> None:
    worker = house.worker(OBSERVERS=[THROWER, EVERYTHING], DRAIN_SECONDS=20, **QUICK_STAGE)
    done = tasks.note.using(priority=3).enqueue("a")
    wait_until_told(house, done.id, "on_success")
    failed = tasks.fail.using(backoff=0).enqueue("no")
    given_up = tasks.give_up.enqueue("enough")
    put_off = tasks.put_off.enqueue(3600)
    for job_id in (failed.id, given_up.id):
        wait_until_told(house, job_id, "on_failure")
    wait_until_told(house, put_off.id, "on_retry")
    crashed = tasks.crash.enqueue("c")
    wait_until_told(house, crashed.id, "on_failure")
    asked = tasks.polite.enqueue("p")
    wait_until_told(house, asked.id, "on_start")
    asked.cancel()
    wait_until_told(house, asked.id, "on_abort")
    assert worker.stop() == 0

    assert words_of(house, done.id) == ["on_start", "on_success"]
    assert words_of(house, failed.id) == ["on_start", "on_retry", "on_start", "on_failure"]
    assert words_of(house, given_up.id) == ["on_start", "on_failure"]
    assert words_of(house, put_off.id) == ["on_start", "on_retry"]
    assert words_of(house, crashed.id) == [*["on_start", "on_retry"] * 2, "on_start", "on_failure"]
    assert words_of(house, asked.id) == ["on_start", "on_abort"]

    started = facts_of(house, done.id, "on_start")
    told = {name: started[name] for name in ("task", "queue", "priority", "attempt", "fence", "seconds", "code")}
    expected = {"task": "tests.runtime.tasks.note", "queue": "default", "priority": 3, "attempt": 1, "fence": 1}
    assert told == {**expected, "seconds": None, "code": None}
    assert started["at"] <= facts_of(house, done.id, "on_success")["at"]
    retried = facts_of(house, failed.id, "on_retry")
    assert (retried["code"], retried["error_type"], retried["retry_in_seconds"]) == (
        "handler_raised",
        "ValueError",
        0,
    )
    last = facts_of(house, failed.id, "on_failure")
    assert (last["code"], last["attempt"], last["retry_in_seconds"]) == ("handler_raised", 2, None)
    assert facts_of(house, given_up.id, "on_failure")["code"] == "discarded"
    snoozed = facts_of(house, put_off.id, "on_retry")
    assert (snoozed["code"], snoozed["retry_in_seconds"]) == ("snoozed", 3600)
    assert facts_of(house, crashed.id, "on_failure")["code"] == "executor_died"
    assert facts_of(house, asked.id, "on_abort")["code"] == "user"
    [drained] = [facts for word, _, facts in heard(house) if word == "on_drain"]
    assert (drained["pool"], drained["pid"], drained["in_hand"]) == ("default", worker.pid, 0)

    everything = (house.folder / "observed").read_text()
    assert "enough" not in everything  # neither arguments nor the words of errors
    assert len({pid for _, pid, _ in heard(house)}) == 1
    log = worker.log.read_text()
    assert log.count("RuntimeError: an observer that throws") == len(
        {"on_start", "on_success", "on_retry", "on_failure", "on_abort", "on_drain"}
    )


def test_one_that_hangs_only_fills_the_backlog(house: House) -> None:
    worker = house.worker(OBSERVERS=[HERE + "Hanger"], OBSERVER_BACKLOG=10, DRAIN_SECONDS=1)
    first = tasks.note.enqueue("first")
    wait_for(lambda: [word for word, *_ in heard(house)] == ["hangs"], seconds=60)
    for number in range(30):
        tasks.note.enqueue(number)
    wait_for(lambda: totals()[State.COMPLETED] == 31, seconds=60)
    wait_for(dropped, seconds=60)
    assert wait_for_state(first.id, State.COMPLETED)
    assert worker.stop() == 0
    assert "observers.not_told" in worker.log.read_text()


def test_a_dead_observers_process_is_replaced(house: House) -> None:
    worker = house.worker(OBSERVERS=[HERE + "Dier", EVERYTHING])
    [process] = worker.children("shiftboss_observers")
    tasks.note.enqueue("deadly")
    wait_for(lambda: worker.says("observers.died"), seconds=60)
    wait_for(dropped, seconds=60)
    later = tasks.note.enqueue("later")
    wait_until_told(house, later.id, "on_success")
    [other] = worker.children("shiftboss_observers")
    assert other.pid != process.pid
    assert worker.stop() == 0


def test_djangos_signals_are_sent_where_somebody_listens(house: House) -> None:
    worker = house.worker(apps="tests.runtime,tests.runtime.signalled", **QUICK_STAGE)
    done = tasks.nap.enqueue("n", 0)
    failed = tasks.fail.using(max_attempts=1).enqueue("no")

    def told(job_id: str) -> list[list[Any]]:
        return [[word, *rest] for word, _, [of, *rest] in heard(house) if of == job_id]

    name = "ShiftbossBackend"
    wait_for(lambda: len(told(done.id)) == len(told(failed.id)) == 2, seconds=60)
    assert told(done.id) == [["task_started", "RUNNING", name, None], ["task_finished", "SUCCESSFUL", name, "n"]]
    assert told(failed.id) == [["task_started", "RUNNING", name, None], ["task_finished", "FAILED", name, None]]
    assert worker.stop() == 0


def test_without_observers_there_is_no_process_and_nothing_is_put_down() -> None:
    async def begin_and_end() -> None:
        observing = Observing(config=keeper_config(""), holdings=Holdings(30), clock=boot_clock)
        observing.start()
        observing.draining(1)
        assert not observing.wanted
        assert (len(observing._backlog), observing._keeping) == (0, None)
        await observing.end()

    asyncio.run(begin_and_end())
    assert observers.wanted(()) == ()


@pytest.fixture
def observed(settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A process with observers of its own enqueues."""
    monkeypatch.setenv("TEST_LOG", str(tmp_path))
    monkeypatch.setattr(observers, "_teller", None)
    settings.SHIFTBOSS = {"OBSERVERS": [THROWER, HERE + "Nobody", EVERYTHING]}
    conf.get.cache_clear()
    yield tmp_path / "observed"
    conf.get.cache_clear()


@pytest.mark.django_db(transaction=True)
def test_enqueues_are_told_once_they_are_committed(observed: Any) -> None:
    def words() -> list[list[Any]]:
        lines = observed.read_text().splitlines() if observed.exists() else []
        return [[word, facts["job_id"]] for word, _, facts in map(json.loads, lines)]

    with transaction.atomic():
        taken_back = tasks.note.enqueue("never")
        transaction.set_rollback(True)
    with transaction.atomic():
        inside = tasks.note.using(key="once").enqueue("inside")
        assert words() == []
    again = tasks.note.using(key="once").enqueue("again")
    assert again.id == inside.id
    results = enqueue_many(tasks.note.with_arguments(number) for number in range(3))
    wait_for(lambda: len(words()) == 4, seconds=20)
    assert words() == [["on_enqueue", int(one.id)] for one in (inside, *results)]
    assert int(taken_back.id) not in [job_id for _, job_id in words()]
    teller = observers._teller
    assert teller
    teller.flush(0.0)


def test_a_backlog_drops_what_it_has_no_room_for_and_counts_it() -> None:
    backlog: Backlog[int] = Backlog(3)
    assert backlog.first(5) == []
    backlog.put(range(5))
    assert (backlog.first(2), len(backlog), backlog.dropped) == ([0, 1], 3, 2)
    backlog.remove(2, told=True)
    assert (backlog.first(5), backlog.dropped) == ([2], 2)
    backlog.remove(1, told=False)
    assert (len(backlog), backlog.dropped) == (0, 3)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (HERE + "Nobody", ImportError),
        (HERE + "Deaf", TypeError),
        (HERE + "Late", TypeError),
        ("nothing", ImportError),
    ],
)
def test_an_observer_that_is_none_is_refused_by_name(path: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=path.rpartition(".")[2]):
        observers.load(path)


@pytest.mark.parametrize("path", [HERE + "Everything", "tests.runtime.observers.Thrower"])
def test_a_class_or_an_object_may_be_an_observer(path: str) -> None:
    assert callable(observers.load(path).on_start)


def test_receivers_of_djangos_own_are_no_reason_to_send_signals() -> None:
    def receive(sender: Any, **_: Any) -> None: ...

    assert observers.wanted(("a",)) == ("a",)
    task_enqueued.connect(receive)
    assert observers.wanted(("a",)) == ("a",)
    task_enqueued.disconnect(receive)
    for signal in (task_started, task_finished):
        signal.connect(receive)
        assert observers.wanted(("a",)) == ("a", "shiftboss.queue.telling.Signals")
        signal.disconnect(receive)
    assert observers.wanted(()) == ()
