"""What handlers tell, up to where it leaves the executor: without a keeper at the other end."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from shiftboss.queue.errors import LeaseLost, NotStorable
from shiftboss.queue.runtime import notes
from shiftboss.queue.runtime.context import Context
from shiftboss.queue.runtime.notes import Checkpoint, Teller, Telling
from tests.waiting import wait_for


class Desk:
    """A teller whose time the test sets, and one run."""

    def __init__(self) -> None:
        self.now = 100.0
        self.woken = 0
        self.lost = False
        self.teller = Teller(wake=self._wake, clock=lambda: self.now)
        self.telling = self.teller.open(7)

    def _wake(self) -> None:
        self.woken += 1

    def context(self, saved: str | None = None, told: Telling | None = None) -> Context:
        """The context of the run."""
        told = told or self.telling
        checkpoint = Checkpoint(saved, told, lambda: self.lost)
        return Context(job_id=1, fence=2, attempt=1, _telling=told, _checkpoint=checkpoint)

    def told(self) -> list[tuple[str, str, Any]]:
        """Kind, name and data of what leaves now."""
        return [(kind, name, json.loads(data or "null")) for _, _, kind, name, data in self.teller.take()]

    def asked(self) -> list[Any]:
        """What leaves of a note that somebody waits for, once it is there."""
        [note] = wait_for(self.teller.take, seconds=10)
        return note

    def beside(self, call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
        """A call that waits, in a thread of its own, and what it comes to."""
        ends: list[Any] = []

        def run() -> None:
            try:
                ends.append(call())
            except Exception as error:
                ends.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread, ends


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.requirement("N8", "L16")
def test_progress_leaves_once_a_second_with_the_latest_word(desk: Desk) -> None:
    context = desk.context()
    context.progress(1, total=10)
    assert desk.told() == [("progress", "", {"value": 1, "total": 10})]
    for done in range(2, 9):
        context.progress(done, total=10, message="pages")
    assert (desk.told(), desk.teller.pause()) == ([], 1.0)
    desk.now += 0.75
    assert (desk.told(), desk.teller.pause()) == ([], 0.25)
    desk.now += 0.25
    assert desk.teller.pause() == 0.0
    assert desk.told() == [("progress", "", {"value": 8, "total": 10, "message": "pages"})]
    assert desk.teller.pause() is None
    context.progress({"stage": "upload", "files": ["a", "b"]})
    desk.telling.close()
    assert desk.told() == [("progress", "", {"stage": "upload", "files": ["a", "b"]})]
    assert desk.teller.pause() is None


@pytest.mark.requirement("N8")
def test_runs_tell_their_progress_each_in_its_own_time(desk: Desk) -> None:
    other = desk.context(told=desk.teller.open(8))
    desk.context().progress(1)
    desk.now += 0.5
    other.progress(2)
    assert len(desk.told()) == 2
    desk.context().progress(3)
    other.progress(4)
    desk.now += 0.5
    assert [note[0] for note in desk.teller.take()] == [7]
    assert desk.teller.pause() == 0.5


@pytest.mark.requirement("L16")
def test_whoever_tells_wakes_the_one_who_sends(desk: Desk) -> None:
    context = desk.context()
    context.progress(1)
    context.event("began")
    assert desk.woken == 2
    context.progress(2)
    assert desk.woken == 3  # the time to sleep is another one now
    context.progress(3)
    assert desk.woken == 3


@pytest.mark.requirement("L16", "L17")
def test_events_leave_in_order_and_those_over_the_number_are_counted_and_told(desk: Desk) -> None:
    context = desk.context()
    context.event("page", number=1, name="cover")
    assert desk.told() == [("event", "page", {"number": 1, "name": "cover"})]
    for number in range(notes.MAX_EVENTS + 4):
        context.event("page", number=number)
    assert [data["number"] for _, _, data in desk.told()] == list(range(notes.MAX_EVENTS - 1))
    desk.telling.close()
    assert desk.told() == [("event", "events_dropped", {"dropped": 5})]


@pytest.mark.requirement("L16")
def test_a_run_that_is_over_tells_nothing_more(desk: Desk) -> None:
    context = desk.context()
    desk.telling.close()
    desk.telling.close()
    context.progress(1)
    context.event("late")
    with pytest.raises(LeaseLost):
        context.checkpoint.save("late")
    assert (desk.told(), desk.teller.pause()) == ([], None)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda c: c.progress("half"), TypeError, "value as a number, not str"),
        (lambda c: c.progress(True), TypeError, "not bool"),
        (lambda c: c.progress(float("nan")), ValueError, "finite value"),
        (lambda c: c.progress(float("inf")), ValueError, "finite value"),
        (lambda c: c.progress(-1), ValueError, "from 0 on"),
        (lambda c: c.progress(1, total="ten"), TypeError, "total as a number"),
        (lambda c: c.progress(1, message=b"x"), TypeError, "message as text"),
        (lambda c: c.progress({"a": 1}, total=2), TypeError, "either a dict or"),
        (lambda c: c.progress({"a": "x" * 5000}), NotStorable, "the progress would be 5,008 bytes"),
        (lambda c: c.progress(1, message="\x00"), NotStorable, "NUL"),
        (lambda c: c.event(7), TypeError, "name as text"),
        (lambda c: c.event(""), ValueError, "from 1 to 100"),
        (lambda c: c.event("x" * 101), ValueError, "not 101"),
        (lambda c: c.event("a\ud800"), NotStorable, "surrogate"),
        (lambda c: c.event("page", data=object()), NotStorable, "builtins.object"),
        (lambda c: c.event("page", data="x" * 5000), NotStorable, "event would be"),
        (lambda c: c.checkpoint.save({1, 2}), NotStorable, "builtins.set"),
        (lambda c: c.checkpoint.save("x" * 300_000), NotStorable, "more than 262,144"),
    ],
)
def test_what_cannot_be_told_is_refused_at_once(
    call: Callable[[Context], None], error: type[Exception], words: str, desk: Desk
) -> None:
    with pytest.raises(error, match=words):
        call(desk.context())
    assert desk.told() == []


@pytest.mark.requirement("L18")
def test_a_checkpoint_is_saved_once_the_keeper_has_said_so(desk: Desk) -> None:
    context = desk.context('{"page": 3}')
    assert context.checkpoint.data == {"page": 3}
    thread, ends = desk.beside(lambda: context.checkpoint.save({"page": 4}))
    ticket, number, kind, _, data = desk.asked()
    assert (ticket, kind, json.loads(data)) == (7, "checkpoint", {"page": 4})
    assert number > 0
    assert (ends, context.checkpoint.data) == ([], {"page": 3})
    desk.teller.noted(number, "ok")
    thread.join(10)
    assert (ends, context.checkpoint.data) == ([None], {"page": 4})
    desk.teller.noted(number, "ok")
    desk.teller.noted(4711, "ok")  # nobody waits


@pytest.mark.requirement("L18", "L4")
@pytest.mark.parametrize(("answer", "error"), [("lost", LeaseLost), ("refused", NotStorable)])
def test_a_checkpoint_that_is_not_taken_was_not_saved(answer: str, error: type[Exception], desk: Desk) -> None:
    context = desk.context()
    thread, ends = desk.beside(lambda: context.checkpoint.save("here"))
    desk.teller.noted(desk.asked()[1], answer)
    thread.join(10)
    assert isinstance(ends[0], error)
    assert context.checkpoint.data is None


@pytest.mark.requirement("L18")
def test_whoever_waits_for_a_checkpoint_finds_by_itself_that_the_lease_is_lost(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "LOOK_SECONDS", 0.01)
    context = desk.context()
    thread, ends = desk.beside(lambda: context.checkpoint.save("here"))
    desk.asked()
    desk.lost = True
    thread.join(10)
    assert isinstance(ends[0], LeaseLost)
    with pytest.raises(LeaseLost):
        asyncio.run(context.checkpoint.asave("here"))


@pytest.mark.requirement("L16", "L18")
def test_a_coroutine_saves_without_holding_up_its_loop(desk: Desk) -> None:
    context = desk.context()

    async def answer() -> None:
        while not (taken := desk.teller.take()):
            await asyncio.sleep(0.001)
        desk.teller.noted(taken[0][1], "ok")

    async def handler() -> Any:
        with pytest.raises(RuntimeError, match="asave"):
            context.checkpoint.save("in a coroutine")
        answering = asyncio.create_task(answer())
        await context.checkpoint.asave({"page": 5})
        await answering
        return context.checkpoint.data

    assert asyncio.run(handler()) == {"page": 5}


@pytest.mark.requirement("L16")
def test_from_many_threads_nothing_is_lost(desk: Desk) -> None:
    context = desk.context()

    def tell(first: int) -> None:
        for number in range(20):
            context.event("one", number=first + number)
            context.progress(number)

    threads = [threading.Thread(target=tell, args=(100 * n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    told = [data["number"] for kind, _, data in desk.told() if kind == "event"]
    assert sorted(told) == [100 * n + number for n in range(5) for number in range(20)]
    assert [number for number in told if number < 100] == list(range(20))


@pytest.mark.requirement("B12")
def test_settling_waits_until_all_that_was_told_is_dealt_with(desk: Desk) -> None:
    context = desk.context()
    desk.telling.settle(lambda: False)  # nothing was told: nothing to wait for
    context.progress(1)
    context.progress(2)
    thread, ends = desk.beside(lambda: desk.telling.settle(lambda: False))
    taken: list[list[Any]] = []
    wait_for(lambda: taken.extend(desk.teller.take()) or len(taken) == 3, seconds=10)
    first, second, mark = taken
    assert [json.loads(note[4])["value"] for note in (first, second)] == [1, 2]
    assert (mark[2], ends) == (notes.SETTLE, [])
    desk.teller.noted(mark[1], "ok")
    thread.join(10)
    assert ends == [None]
    desk.telling.settle(lambda: False)
    context.progress(3)
    desk.telling.settle(lambda: True)  # the lease is lost


def test_a_run_without_a_queue_tells_nobody() -> None:
    context = Context(job_id=0, fence=0, attempt=1)
    context.progress(1)
    context.event("one")
    context.checkpoint.save([1])
    assert context.checkpoint.data == [1]
