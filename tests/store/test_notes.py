"""What handlers tell while they run: progress, checkpoints, events; on both executors of statements."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from psycopg.errors import DiskFull

from shiftboss import Owner
from shiftboss.queue.contract import Lease, Note, NoteKind, Settlement
from shiftboss.queue.errors import NotAllowed, StoreUnavailable
from shiftboss.queue.store import notes, operate, upkeep
from shiftboss.queue.store.statement import Verb, run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    claimed,
    events,
    execute,
    expired,
    finished,
    live,
    report,
    running,
    to_be_cancelled,
    whole,
)
from tests.store.sessions import Session, watched
from tests.store.test_locks import locked
from tests.store.test_operate import LIMITS
from tests.store.test_partitions import drop, today

PROGRESS = Note(NoteKind.PROGRESS, '{"value": 3, "total": 4}')
CHECKPOINT = Note(NoteKind.CHECKPOINT, '{"page": 7}')
EVENT = Note(NoteKind.EVENT, '{"rows": 12}', "imported")
NOTES = {"progress": PROGRESS, "checkpoint": CHECKPOINT, "event": EVENT}


def tell(worker: int, *items: tuple[Lease, Note]) -> Verb[Settlement]:
    """The verb by which a worker hands on what its handlers tell."""
    return notes.note(items, authority=SYSTEM, worker_id=worker)


def told(job_id: int) -> list[tuple[int, str, Any]]:
    """Number, kind and data of a job's events."""
    return [(event["seq"], event["kind"], json.loads(event["data"])) for event in events(job_id)]


def column(job_id: int, name: str) -> Any:
    """What a column of JSON holds, wherever the job is."""
    row = live(job_id) or finished(job_id)
    assert row
    return None if row[name] is None else json.loads(row[name])


@pytest.mark.requirement("L16", "N8", "L17")
def test_the_last_progress_and_checkpoint_count_and_all_events_in_their_order(
    perform: Perform, worker: int
) -> None:
    one, two = running(worker, 2)
    first = Note(NoteKind.PROGRESS, '{"value": 1}')
    again = Note(NoteKind.CHECKPOINT, '{"page": 8}')
    second = Note(NoteKind.EVENT, "[]", "indexed")
    before = live(one.job_id)
    items = [
        (one, first),
        (two, EVENT),
        (one, EVENT),
        (one, CHECKPOINT),
        (one, PROGRESS),
        (one, second),
        (one, again),
    ]
    assert perform(tell(worker, *items)) == Settlement(settled={one, two})
    after = live(one.job_id)
    assert before
    assert after
    assert {name for name in after if after[name] != before[name]} == {"progress", "checkpoint"}
    assert column(one.job_id, "progress") == {"value": 3, "total": 4}
    assert column(one.job_id, "checkpoint") == {"page": 8}
    assert told(one.job_id) == [
        (1, "event", {"name": "imported", "data": {"rows": 12}}),
        (2, "event", {"name": "indexed", "data": []}),
    ]
    assert [(event["worker_id"], event["fence"]) for event in events(one.job_id)] == [(worker, 1)] * 2
    assert perform(tell(worker, (one, EVENT))) == Settlement(settled={one})
    assert [seq for seq, _, _ in told(one.job_id)] == [1, 2, 3]
    assert [seq for seq, _, _ in told(two.job_id)] == [1]
    assert perform(tell(worker, (two, EVENT))) == Settlement(settled={two})
    assert [seq for seq, _, _ in told(two.job_id)] == [1, 2]


@pytest.mark.requirement("L17")
def test_an_event_comes_after_the_numbers_that_the_row_and_the_events_hold(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    execute("update shiftboss_job set event_seq = 5 where id = %s", held.job_id)
    perform(tell(worker, (held, EVENT)))
    perform(tell(worker, (held, EVENT)))
    assert [seq for seq, _, _ in told(held.job_id)] == [6, 7]


@pytest.mark.requirement("L4", "L18", "B4")
@pytest.mark.parametrize("kind", NOT_HELD)
@pytest.mark.parametrize("verb", NOTES)
def test_a_note_under_a_lease_that_is_not_held_changes_nothing_and_is_recorded(
    verb: str, kind: str, perform: Perform, worker: int
) -> None:
    held = NOT_HELD[kind](worker)
    before, number = whole(held.job_id), len(events(held.job_id))
    assert perform(tell(worker, (held, NOTES[verb]))) == Settlement(lost={held})
    assert whole(held.job_id) == before
    [event] = events(held.job_id)[number:]
    assert (event["kind"], event["worker_id"], event["fence"]) == ("write_rejected", worker, held.fence)
    assert json.loads(event["data"])["verb"] == verb


def strangers(worker: int, other: int) -> list[Lease]:
    """A lease that another worker holds."""
    return running(other)


def older_and_newer(worker: int, other: int) -> list[Lease]:
    """The worker's own job under fences that are not its own."""
    [held] = running(worker)
    return [held._replace(fence=0), held._replace(fence=2)]


def too_late(worker: int, other: int) -> list[Lease]:
    """A lease that has expired."""
    return [expired(worker)]


def exchanged(worker: int, other: int) -> list[Lease]:
    """Two of the worker's own jobs, each under the other's fence."""
    expired(other)
    run(upkeep.reap(authority=SYSTEM))
    run(upkeep.stage(authority=SYSTEM))
    [again] = claimed(worker)
    [first] = running(worker)
    return [Lease(again.id, first.fence), Lease(first.job_id, again.fence)]


@pytest.mark.requirement("L4", "L18", "N9")
@pytest.mark.parametrize("offered", [strangers, older_and_newer, too_late, exchanged])
@pytest.mark.parametrize("verb", NOTES)
def test_each_condition_of_the_guard_is_missed(
    verb: str, offered: Callable[[int, int], list[Lease]], perform: Perform, worker: int, other: int
) -> None:
    leases = offered(worker, other)
    before = [whole(one.job_id) for one in leases]
    assert perform(tell(worker, *((one, NOTES[verb]) for one in leases))) == Settlement(lost=set(leases))
    assert [whole(one.job_id) for one in leases] == before
    assert "event" not in {kind for one in leases for _, kind, _ in told(one.job_id)}


@pytest.mark.parametrize("verb", NOTES)
def test_one_lost_lease_costs_the_others_nothing(verb: str, perform: Perform, worker: int, other: int) -> None:
    [foreign], own = running(other), running(worker, 2)
    items = [(one, NOTES[verb]) for one in (own[0], foreign, own[1])]
    assert perform(tell(worker, *items)) == Settlement(settled=set(own), lost={foreign})


@pytest.mark.parametrize("verb", NOTES)
def test_a_locked_row_is_busy_at_once_and_the_others_are_written(verb: str, connect: Any, worker: int) -> None:
    keeper: Session = connect()
    leases = running(worker, 3)
    with locked(leases[1].job_id):
        # Waiting for the lock would raise after `lock_timeout`.
        keeper.execute("set lock_timeout = '20ms'")
        answer = keeper.run(tell(worker, *((one, NOTES[verb]) for one in leases)))
    assert answer == Settlement(settled={leases[0], leases[2]}, busy={leases[1]})
    assert events(leases[1].job_id) == []


def test_a_job_whose_events_somebody_else_numbers_is_busy(connect: Any, worker: int) -> None:
    keeper, holder = connect(), connect()
    keeper.execute("set lock_timeout = '20ms'")
    [held] = running(worker)
    holder.execute("begin")
    holder.execute("select pg_advisory_xact_lock(hashtextextended('shiftboss_event', %s))", [held.job_id])
    assert keeper.run(tell(worker, (held, EVENT))) == Settlement(busy={held})
    assert events(held.job_id) == []
    holder.execute("commit")
    assert keeper.run(tell(worker, (held, EVENT))) == Settlement(settled={held})


@pytest.mark.requirement("L16", "L18")
def test_events_that_somebody_else_numbers_hold_up_no_other_job_and_nobody_waits(
    connect: Any, worker: int, other: int
) -> None:
    keeper, holder = connect(), connect()
    one, two, three = running(worker, 3)
    [foreign] = running(other)
    holder.execute("begin")
    for held in (one, foreign):
        holder.execute("select pg_advisory_xact_lock(hashtextextended('shiftboss_event', %s))", [held.job_id])
    items = [(one, CHECKPOINT), (one, EVENT), (two, EVENT), (three, CHECKPOINT), (foreign, PROGRESS)]
    errors: list[Exception] = []
    assert keeper.run(watched(tell(worker, *items), errors)) == Settlement(
        settled={two, three}, busy={one, foreign}
    )
    assert errors == []  # nothing ran into `lock_timeout`
    assert column(one.job_id, "checkpoint") is None
    assert (len(events(one.job_id)), len(events(two.job_id)), events(foreign.job_id)) == (0, 1, [])
    holder.execute("commit")
    again = tell(worker, *(item for item in items if item[0] in (one, foreign)))
    assert keeper.run(again) == Settlement(settled={one}, lost={foreign})
    assert [kind for _, kind, _ in told(foreign.job_id)] == ["write_rejected"]


@pytest.mark.requirement("L16", "L17", "L18")
@pytest.mark.parametrize(
    "bad", ["[" * 50_000 + "]" * 50_000, '{"a": "\x00"}', "no JSON"], ids=["too deep", "NUL", "no JSON"]
)
@pytest.mark.parametrize("kind", [NoteKind.CHECKPOINT, NoteKind.EVENT])
def test_what_cannot_be_stored_is_refused_alone(kind: NoteKind, bad: str, perform: Perform, worker: int) -> None:
    leases = running(worker, 5)
    items = [(one, note) for one in leases for note in (CHECKPOINT, EVENT)]
    items[7:7] = [(leases[3], Note(kind, bad, "bad"))]
    fine = set(leases) - {leases[3]}
    assert perform(tell(worker, *items)) == Settlement(settled=fine, refused={leases[3]})
    assert {one for one in leases if column(one.job_id, "checkpoint") == {"page": 7}} == fine
    assert {one: len(events(one.job_id)) for one in leases} == {one: int(one in fine) for one in leases}


@pytest.mark.requirement("L16", "L18")
def test_an_error_that_no_note_has_brought_about_is_raised(connect: Any, worker: int) -> None:
    keeper = connect()
    leases = running(worker, 3)
    keeper.execute("set default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable):
        keeper.run(tell(worker, *((one, CHECKPOINT) for one in leases)))


@pytest.mark.requirement("L17")
def test_a_batch_with_one_bad_note_is_still_one_transaction(connect: Any, worker: int) -> None:
    keeper = connect()
    leases = running(worker, 4)
    items = [(one, EVENT) for one in leases]
    items[0] = (leases[0], Note(NoteKind.EVENT, "no JSON", "bad"))
    execute(
        "create function refuse() returns trigger language plpgsql as $$ begin "
        f"if new.job_id = {leases[2].job_id} "
        f"and exists (select from shiftboss_event where job_id = {leases[1].job_id}) then "
        "raise 'disk full' using errcode = '53100'; end if; return new; end $$"
    )
    execute("create trigger refuse before insert on shiftboss_event for each row execute function refuse()")
    try:
        with pytest.raises(DiskFull):
            keeper.run(tell(worker, *items))
    finally:
        execute("drop function refuse cascade")
    assert [events(one.job_id) for one in leases] == [[]] * 4


def test_a_job_whose_end_is_asked_for_may_still_tell(perform: Perform, worker: int) -> None:
    held = to_be_cancelled(worker)
    items = [(held, one) for one in NOTES.values()]
    assert perform(tell(worker, *items)) == Settlement(settled={held})


@pytest.mark.requirement("L16", "L26")
@pytest.mark.parametrize("end", ["fail", "release", "snooze", "reap"])
def test_a_checkpoint_is_there_for_the_next_attempt(end: str, worker: int) -> None:
    [held] = running(worker, lease_seconds=0.5 if end == "reap" else 30)
    run(tell(worker, (held, CHECKPOINT)))
    if end == "reap":
        execute("update shiftboss_job set lease_expires_at = clock_timestamp() - interval '1 second'")
        run(upkeep.reap(authority=SYSTEM))
    else:
        run(report(end, held, worker))
    execute("update shiftboss_job set due_at = now() - interval '1 second'")
    run(upkeep.stage(authority=SYSTEM))
    [again] = claimed(worker)
    assert (again.id, again.fence) == (held.job_id, 2)
    assert again.checkpoint is not None
    assert json.loads(again.checkpoint) == {"page": 7}


@pytest.mark.requirement("L19")
def test_a_finished_job_keeps_its_checkpoint_and_a_rerun_starts_without_one(worker: int) -> None:
    [held] = running(worker)
    run(tell(worker, (held, CHECKPOINT), (held, PROGRESS)))
    run(report("complete", held, worker))
    assert column(held.job_id, "checkpoint") == {"page": 7}
    assert column(held.job_id, "progress") == {"value": 3, "total": 4}
    run(operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS))
    [again] = claimed(worker)
    assert (again.id != held.job_id, again.checkpoint) == (True, None)


@pytest.mark.requirement("N4")
def test_only_the_system_may_tell_for_a_job(worker: int) -> None:
    [held] = running(worker)
    with pytest.raises(NotAllowed):
        run(notes.note([(held, EVENT)], authority=Owner("kim"), worker_id=worker))


@pytest.mark.requirement("L5")
def test_an_event_on_a_day_without_a_partition_makes_it(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    drop("shiftboss_event", today())
    assert perform(tell(worker, (held, EVENT), (held, CHECKPOINT))) == Settlement(settled={held})
    assert [kind for _, kind, _ in told(held.job_id)] == ["event"]
