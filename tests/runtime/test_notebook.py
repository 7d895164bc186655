"""The keeper's notebook, with a record that answers as the test wants."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss.queue.contract import Claimed, Lease, Note, NoteKind, Settlement
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Done, Outcome
from shiftboss.queue.runtime import notebook
from shiftboss.queue.runtime.budget import Budget
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.keeper import Keeper
from shiftboss.queue.runtime.loop import Loop
from shiftboss.queue.runtime.notebook import Notebook
from tests.clients.conftest import keeper_config

DONE = Done(None, 1)


def progress(number: int) -> Note:
    return Note(NoteKind.PROGRESS, str(number))


def event(name: str) -> Note:
    return Note(NoteKind.EVENT, "{}", name)


def checkpoint(page: int) -> Note:
    return Note(NoteKind.CHECKPOINT, str(page))


class Record:
    """Takes notes, unless it is away or in trouble, or the lease is lost, busy or told what cannot be stored."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[Lease, Note]]] = []
        self.away = False
        self.trouble: Exception | None = None
        self.lost: set[Lease] = set()
        self.busy: set[Lease] = set()
        self.bad: set[Lease] = set()
        self.meanwhile = lambda: None

    async def note(self, items: Sequence[tuple[Lease, Note]]) -> Settlement:
        """As `QueueClient.note`."""
        await asyncio.sleep(0)
        self.meanwhile()
        if self.away:
            raise StoreUnavailable("away")
        if self.trouble is not None:
            raise self.trouble
        leases = {lease for lease, _ in items}
        taken = leases - self.lost - self.busy - self.bad
        self.calls.append([item for item in items if item[0] in taken])
        return Settlement(taken, leases & self.lost, leases & self.busy, leases & self.bad)


class Desk:
    """A notebook over a record, with jobs that the keeper holds."""

    def __init__(self) -> None:
        self.record = Record()
        self.holdings = Holdings(30.0)
        self.reported: list[tuple[int, Outcome]] = []
        self.answers: list[str] = []
        self.book = Notebook(self.record, self.holdings, report=self._report)  # type: ignore[arg-type]

    def _report(self, held: Held, outcome: Outcome) -> None:
        self.reported.append((held.job.id, outcome))

    def held(self, job_id: int) -> Held:
        """A job that the keeper has just claimed."""
        job = Claimed(job_id, 1, "default", "task", "{}", 0, datetime.now(UTC), 0, 0, False)
        [held] = self.holdings.claimed([job], 0.0, worker_id=1)
        return held

    def written(self) -> list[tuple[int, str]]:
        """Job and what it told, as the record has taken it."""
        return [(lease.job_id, note.name or note.data) for call in self.record.calls for lease, note in call]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def once(desk: Desk) -> None:
    """One turn, which has something to do."""
    asyncio.run(asyncio.wait_for(desk.book.run_once(), 10))


@pytest.mark.requirement("L16", "L18")
def test_notes_of_a_job_are_written_in_order_and_its_outcome_is_handed_on_after_them(desk: Desk) -> None:
    one, two = desk.held(1), desk.held(2)
    desk.book.end(two, DONE)  # has told nothing
    assert desk.reported == [(2, DONE)]
    desk.book.add(one, progress(1))
    desk.book.add(one, event("a"))
    desk.book.add(one, checkpoint(7), desk.answers.append)
    desk.book.add(one, event("b"))
    desk.book.add(one, progress(2))
    desk.book.end(one, DONE)
    assert (desk.reported, desk.answers, desk.book.pending) == ([(2, DONE)], [], 1)
    once(desk)
    assert desk.written() == [(1, "a"), (1, "7"), (1, "b"), (1, "2")]
    assert (desk.reported[1:], desk.answers, desk.book.pending) == ([(1, DONE)], ["ok"], 0)


@pytest.mark.requirement("L16")
def test_what_comes_while_a_batch_is_written_has_its_own_turn(desk: Desk) -> None:
    one = desk.held(1)
    desk.book.add(one, progress(1))

    def meanwhile() -> None:
        desk.record.meanwhile = lambda: None
        desk.book.add(one, progress(2))
        desk.book.add(one, progress(3))
        desk.book.end(one, DONE)

    desk.record.meanwhile = meanwhile
    once(desk)
    assert desk.reported == []
    once(desk)
    assert desk.written() == [(1, "1"), (1, "3")]
    assert desk.reported == [(1, DONE)]


@pytest.mark.requirement("L18", "L30")
def test_while_the_record_is_away_checkpoints_and_outcomes_wait_and_progress_is_its_last_word(desk: Desk) -> None:
    one = desk.held(1)
    desk.record.away = True
    for number in range(3):
        desk.book.add(one, progress(number))
        with pytest.raises(StoreUnavailable):
            once(desk)
    desk.book.add(one, checkpoint(7), desk.answers.append)
    desk.book.end(one, DONE)
    with pytest.raises(StoreUnavailable):
        once(desk)
    assert (desk.book.trouble, desk.answers, desk.reported) == (True, [], [])
    desk.record.away = False
    once(desk)
    assert desk.written() == [(1, "2"), (1, "7")]
    assert (desk.book.trouble, desk.answers, desk.reported) == (False, ["ok"], [(1, DONE)])


@pytest.mark.requirement("L18", "L30")
def test_what_the_record_has_trouble_with_is_kept_whatever_the_trouble_is(desk: Desk) -> None:
    one, two = desk.held(1), desk.held(2)
    desk.record.trouble = RuntimeError("cannot execute UPDATE in a read-only transaction")
    desk.book.add(one, checkpoint(7), desk.answers.append)
    desk.book.add(one, event("a"))
    desk.book.end(one, DONE)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            once(desk)
        assert (desk.book.trouble, desk.answers, desk.reported) == (True, [], [])
    desk.book.add(two, event("b"))
    with pytest.raises(RuntimeError):
        once(desk)
    desk.record.trouble = None
    once(desk)
    assert desk.written() == [(1, "7"), (1, "a"), (2, "b")]
    assert (desk.book.trouble, desk.answers, desk.reported) == (False, ["ok"], [(1, DONE)])


@pytest.mark.requirement("L4", "L18")
def test_a_lost_lease_is_told_and_the_others_are_written(desk: Desk) -> None:
    one, two = desk.held(1), desk.held(2)
    desk.record.lost = {one.job.lease}
    for held in (one, two):
        desk.book.add(held, checkpoint(7), desk.answers.append)
    once(desk)
    assert (desk.written(), desk.answers) == ([(2, "7")], ["lost", "ok"])


@pytest.mark.requirement("S13", "L4")
def test_nothing_is_submitted_after_the_lease_is_lost(desk: Desk) -> None:
    one, two, three = desk.held(1), desk.held(2), desk.held(3)
    for held in (one, two, three):
        desk.book.add(held, checkpoint(7), desk.answers.append)
        desk.book.end(held, DONE)
    one.lost = True
    desk.holdings.drop([two.job.lease])
    desk.book.forget(three)
    once(desk)
    assert (desk.written(), desk.answers) == ([], ["lost"] * 3)
    assert desk.reported == [(1, DONE), (2, DONE)]


@pytest.mark.requirement("L18")
def test_what_is_forgotten_while_it_is_written_is_answered_once(desk: Desk) -> None:
    one = desk.held(1)
    desk.book.add(one, checkpoint(7), desk.answers.append)
    desk.record.meanwhile = lambda: desk.book.forget(one)
    once(desk)
    assert (desk.answers, desk.reported) == (["lost"], [])


@pytest.mark.requirement("L5", "L18")
def test_a_keeper_that_ends_reports_what_its_runs_came_to_where_their_notes_cannot_be_written(
    desk: Desk, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    completed: list[Lease] = []

    async def complete(items: Sequence[tuple[Lease, Outcome]]) -> Settlement:
        completed.extend(lease for lease, _ in items)
        return Settlement(settled=set(completed))

    record: Any = desk.record
    record.complete = complete
    for verb in ("fail", "release", "snooze", "discard", "quarantine", "reap_own", "revisions"):
        setattr(record, verb, None)
    desk.record.trouble = RuntimeError("no")

    async def end() -> None:
        config = replace(keeper_config("", lease_seconds=60), run_folder=str(tmp_path))
        keeper = Keeper(config, record, None)  # type: ignore[arg-type]
        desk.holdings = keeper._holdings
        one, two = desk.held(1), desk.held(2)
        for held in (one, two):
            keeper._notebook.add(held, event("a"))
        keeper._report(one, DONE)
        ended = asyncio.Event()
        loops = [
            asyncio.create_task(Loop("notes", keeper._notebook.run_once, every_seconds=0.01).run(ended)),
            asyncio.create_task(Loop("report", keeper._reporter.run_once, every_seconds=0.01).run(ended)),
        ]
        await keeper._settle_all(0.2, then=30.0)
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        assert (keeper._notebook.pending, keeper._reporter.pending) == (0, 0)
        assert completed == [one.job.lease]

    asyncio.run(end())
    assert [one.outcomes for one in caplog.records if one.message == "notebook.pending"] == [1]  # type: ignore[attr-defined]


def test_a_busy_row_is_offered_again_soon(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "BUSY_SECONDS", 0.01)
    one = desk.held(1)
    desk.book.add(one, checkpoint(7), desk.answers.append)

    async def twice() -> None:
        desk.record.busy = {one.job.lease}
        await desk.book.run_once()
        assert desk.answers == []
        desk.record.busy = set()
        await asyncio.wait_for(desk.book.run_once(), 10)

    asyncio.run(twice())
    assert (desk.written(), desk.answers) == ([(1, "7")], ["ok"])


def test_a_page_that_the_record_cannot_hold_costs_the_others_nothing(desk: Desk) -> None:
    jobs = [desk.held(number) for number in range(5)]
    desk.record.bad = {jobs[3].job.lease}
    for held in jobs:
        desk.book.add(held, checkpoint(7), desk.answers.append)
    once(desk)
    assert sorted(desk.written()) == [(number, "7") for number in (0, 1, 2, 4)]
    assert sorted(desk.answers) == ["ok"] * 4 + ["refused"]


@pytest.mark.requirement("L16", "L17")
def test_events_over_the_number_are_counted_and_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "MAX_EVENTS", 3)
    one, two = desk.held(1), desk.held(2)
    desk.record.away = True
    for name in "abcde":
        desk.book.add(one, event(name))
    desk.book.add(two, event("f"))
    desk.book.end(two, DONE)
    with pytest.raises(StoreUnavailable):
        once(desk)
    desk.record.away = False
    once(desk)
    told = [note for call in desk.record.calls for _, note in call]
    assert [note.name for note in told] == ["a", "b", "c", "events_dropped", "events_dropped"]
    assert [note.data for note in told[3:]] == ['{"dropped":2}', '{"dropped":1}']
    assert desk.reported == [(2, DONE)]
    desk.book.add(one, event("g"))
    once(desk)
    assert desk.written()[-1] == (1, "g")


def test_batches_are_bounded_in_number_and_in_size(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.book, "_budget", Budget(2, 1000))
    for number in range(5):
        desk.book.add(desk.held(number), event(str(number)))
    for _ in range(3):
        once(desk)
    assert [len(call) for call in desk.record.calls] == [2, 2, 1]
    monkeypatch.setattr(desk.book, "_budget", Budget(1000, 1))
    for number in range(2):
        desk.book.add(desk.held(number), event(str(number)))
    for _ in range(2):
        once(desk)
    assert [len(call) for call in desk.record.calls[3:]] == [1, 1]


def test_the_notes_of_one_run_that_take_too_long_come_again_in_parts(desk: Desk) -> None:
    one = desk.held(1)
    names = [str(number) for number in range(20)]
    for name in names:
        desk.book.add(one, event(name))
    for _ in range(9):  # from a thousand down to less than 20
        desk.record.away = True
        with pytest.raises(StoreUnavailable):
            once(desk)
    desk.record.away = False
    while len(desk.written()) < len(names):
        once(desk)
    assert desk.written() == [(1, name) for name in names]
    assert len(desk.record.calls) > 1


@pytest.mark.requirement("B12")
def test_a_mark_is_answered_once_all_before_it_is_settled(desk: Desk) -> None:
    one = desk.held(1)
    desk.book.after(one, desk.answers.append)
    assert desk.answers == ["ok"]
    desk.book.add(one, progress(1))
    desk.book.after(one, desk.answers.append)
    assert desk.answers == ["ok"]
    once(desk)
    assert (desk.written(), desk.answers) == ([(1, "1")], ["ok", "ok"])
    desk.book.add(one, progress(2))
    desk.record.meanwhile = lambda: desk.book.after(one, desk.answers.append)
    once(desk)
    desk.record.meanwhile = lambda: None
    assert desk.answers == ["ok", "ok"]
    once(desk)  # nothing is left but the mark
    assert (len(desk.record.calls), desk.answers) == (2, ["ok"] * 3)
