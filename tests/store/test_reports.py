"""How a leased run ends, and what the record keeps of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Done, Lost, Released
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import lease, operate
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    DISCARDED,
    FAILED,
    LOST,
    NOT_HELD,
    QUARANTINED,
    REPORTS,
    SYSTEM,
    a_worker,
    attempts,
    claimed,
    enqueued,
    events,
    execute,
    finished,
    live,
    report,
    rows,
    running,
    scalar,
    state,
    to_be_cancelled,
    whole,
)
from tests.store.sessions import Ear, Session

# Values for every column that no verb fills yet, none of them a default.
LATER_COLUMNS = """
update shiftboss_job set deadline = '2030-01-01', tenant = 'acme', key = 'k1', watchers = '{lee,kim}',
    tags = '{a,b}', limit_keys = '{l}', meta = '{"m": 1}', trace = 't', batch_id = 4, rerun_of = 5,
    revision_id = 6, code_version = 'v7', failures = 2, losses = 1, suspect = true, cancel_cause = 'user',
    cancel_requested_at = '2026-01-01', progress = '{"done": 1}', checkpoint = '{"at": 2}', event_seq = 8,
    error_code = 'c', error_type = 't', error_message = 'm', error_fingerprint = 'f', owner = 'kim'
where id = %s
"""


def settled(*leases: Lease) -> Settlement:
    """The answer that the record holds these ends."""
    return Settlement(settled=set(leases))


def a_row(job_id: int) -> dict[str, Any]:
    """The row of a job that is still live."""
    row = live(job_id)
    assert row is not None
    return row


@pytest.mark.requirement("L5", "R10")
def test_complete_moves_the_row_with_every_column(perform: Perform, worker: int) -> None:
    [held] = running(worker, priority=3)
    execute(LATER_COLUMNS, held.job_id)
    before = a_row(held.job_id)
    del before["follow_up"], before["slot_id"]  # only a live job waits for another, or has a slot
    assert perform(report("complete", held, worker)) == settled(held)
    assert live(held.job_id) is None
    after = finished(held.job_id)
    assert after is not None
    own = {"state": "completed", "lease_expires_at": None}
    assert {name: after[name] for name in before} == before | own
    assert {name for name, value in before.items() if value is None} == {"quarantine_reason", "quarantined_at"}
    assert after["run_ms"] == 12
    assert scalar("select result = '{\"sum\": 3}' from shiftboss_finished")
    assert scalar("select finished_at between started_at and clock_timestamp() from shiftboss_finished")
    assert set(after) - set(before) == {"result", "run_ms", "finished_at"}


@pytest.mark.requirement("L5")
def test_a_job_that_returned_nothing_has_no_result(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    perform(lease.complete([(held, Done(None, 0))], authority=SYSTEM, worker_id=worker))
    assert rows("select result, run_ms from shiftboss_finished") == [(None, 0)]


@pytest.mark.requirement("L5")
def test_a_job_that_was_to_be_cancelled_may_still_complete(perform: Perform, worker: int) -> None:
    held = to_be_cancelled(worker)
    perform(report("complete", held, worker))
    assert rows("select state, cancel_cause from shiftboss_finished") == [("completed", "user")]


@pytest.mark.requirement("L19", "R8")
def test_a_failure_is_counted_and_tried_again_after_its_backoff(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    execute("update shiftboss_job set suspect = true where id = %s", held.job_id)
    before = a_row(held.job_id)
    assert perform(report("fail", held, worker)) == settled(held)
    after = a_row(held.job_id)
    waits = scalar("select due_at - clock_timestamp() from shiftboss_job where id = %s", held.job_id)
    assert timedelta(seconds=50) < waits < timedelta(seconds=60)
    changed = {
        "state": "retryable",
        "failures": 1,
        "due_at": after["due_at"],
        "worker_id": None,
        "lease_expires_at": None,
        "suspect": False,
        "error_code": "handler_raised",
        "error_type": "ValueError",
        "error_message": "no",
        "error_fingerprint": "1b0c9e4f",
    }
    assert after == before | changed
    [attempt] = attempts(held.job_id)
    assert attempt.pop("ended_at") >= before["started_at"]
    assert attempt.pop("evidence") == "{}"
    assert attempt == {
        "job_id": held.job_id,
        "fence": 1,
        "queue": "default",
        "task": before["task"],
        "worker_id": worker,
        "outcome": "failed",
        "started_at": before["started_at"],
        "run_ms": 12,
        "error_code": "handler_raised",
        "error_type": "ValueError",
        "error_message": "no",
        "error_fingerprint": "1b0c9e4f",
        "traceback": "Traceback…",
    }


@pytest.mark.requirement("L29")
def test_the_last_failure_that_is_allowed_quarantines(perform: Perform, worker: int) -> None:
    [job_id] = enqueued(failure_limit=2)
    for failures, now in ((1, "retryable"), (2, "quarantined")):
        run(operate.expedite([job_id], authority=SYSTEM, by="kim"))
        [job] = claimed(worker)
        perform(report("fail", job.lease, worker))
        row = a_row(job_id)
        assert (row["state"], row["failures"], row["losses"]) == (now, failures, 0)
    assert row["quarantine_reason"] == "failures_exhausted"
    assert row["quarantined_at"] is not None
    assert (row["worker_id"], row["lease_expires_at"]) == (None, None)
    assert [attempt["fence"] for attempt in attempts(job_id)] == [1, 2]


@pytest.mark.requirement("L26", "L19")
def test_a_released_job_is_available_again_and_has_lost_nothing(perform: Perform, worker: int) -> None:
    [held] = running(worker, due_in=-60)
    execute("update shiftboss_job set suspect = true where id = %s", held.job_id)
    before = a_row(held.job_id)
    assert perform(report("release", held, worker)) == settled(held)
    assert a_row(held.job_id) == before | {"state": "available", "worker_id": None, "lease_expires_at": None}
    [attempt] = attempts(held.job_id)
    assert (attempt["outcome"], attempt["error_code"], attempt["fence"]) == ("released", "shutdown", 1)


@pytest.mark.requirement("L26", "C1")
def test_a_release_wakes_an_idle_worker(perform: Perform, worker: int, ear: Ear) -> None:
    [held] = running(worker, priority=4)
    a_worker(idle=True)
    perform(report("release", held, worker))
    assert ear.heard() == "4 default"


@pytest.mark.requirement("L29")
@pytest.mark.parametrize("reason", [QuarantineReason.UNKNOWN_TASK, QuarantineReason.INVALID_ARGUMENTS])
def test_a_job_that_cannot_run_is_held_back(perform: Perform, worker: int, reason: QuarantineReason) -> None:
    [held] = running(worker)
    outcome = replace(QUARANTINED, reason=reason)
    answer = perform(lease.quarantine([(held, outcome)], authority=SYSTEM, worker_id=worker))
    assert answer == settled(held)
    row = a_row(held.job_id)
    assert (row["state"], row["quarantine_reason"], row["error_code"]) == ("quarantined", reason, reason)
    assert row["error_message"] == QUARANTINED.message
    assert (row["failures"], row["losses"], row["worker_id"]) == (0, 0, None)
    [attempt] = attempts(held.job_id)
    assert (attempt["outcome"], attempt["error_code"]) == ("quarantined", reason)


@pytest.mark.requirement("R6", "L19")
def test_a_death_while_alone_is_a_loss(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    assert perform(report("reap_own", held, worker)) == settled(held)
    row = a_row(held.job_id)
    assert (row["state"], row["losses"], row["failures"], row["suspect"]) == ("retryable", 1, 0, True)
    assert (row["error_code"], row["error_message"]) == ("executor_died", "killed by signal 9")
    assert scalar("select due_at <= clock_timestamp() from shiftboss_job where id = %s", held.job_id)
    [attempt] = attempts(held.job_id)
    assert (attempt["outcome"], attempt["error_code"]) == ("lost", "executor_died")
    assert scalar("select evidence = '{\"signal\": 9}' from shiftboss_attempt")


@pytest.mark.requirement("L29", "R6")
def test_the_last_death_while_alone_that_is_allowed_is_poison(perform: Perform, worker: int) -> None:
    [held] = running(worker, loss_limit=1)
    perform(report("reap_own", held, worker))
    row = a_row(held.job_id)
    assert (row["state"], row["quarantine_reason"], row["losses"]) == ("quarantined", "poison", 1)


@pytest.mark.requirement("L29", "R6")
def test_a_death_among_several_counts_for_nobody(perform: Perform, worker: int) -> None:
    leases = running(worker, 2, loss_limit=1)
    items = [(one, Lost(False, one is leases[0], "executor_died", "killed", "{}")) for one in leases]
    perform(lease.reap_own(items, authority=SYSTEM, worker_id=worker))
    found = rows("select state, losses, suspect from shiftboss_job order by id")
    assert found == [("retryable", 0, True), ("retryable", 0, False)]


@pytest.mark.requirement("L3", "S3")
def test_a_heartbeat_prolongs_a_lease_and_touches_nothing_else(perform: Perform, worker: int) -> None:
    [held] = running(worker, lease_seconds=5)
    before = a_row(held.job_id)
    answer = perform(lease.heartbeat([held], authority=SYSTEM, worker_id=worker, lease_seconds=60))
    after = a_row(held.job_id)
    assert (answer.renewed, answer.busy, answer.lost) == ({held}, frozenset(), frozenset())
    assert after == before | {"lease_expires_at": after["lease_expires_at"]}
    assert after["lease_expires_at"] - before["lease_expires_at"] > timedelta(seconds=50)


@pytest.mark.requirement("L4", "L3")
def test_a_heartbeat_answers_for_each_lease(perform: Perform, worker: int, other: int) -> None:
    held, foreign = [*running(worker), *running(other)]
    old = NOT_HELD["running under a newer fence"](worker)
    gone = NOT_HELD["completed"](worker)
    before = {one.job_id: whole(one.job_id) for one in (foreign, old, gone)}
    leases = [held, foreign, old, gone]
    answer = perform(lease.heartbeat(leases, authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert answer.renewed == {held}
    assert answer.busy == frozenset()
    assert answer.lost == {foreign, old, gone}
    assert {job_id: whole(job_id) for job_id in before} == before


@pytest.mark.requirement("L3")
def test_no_leases_no_heartbeat(perform: Perform, worker: int) -> None:
    answer = perform(lease.heartbeat([], authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert answer == type(answer)(frozenset(), frozenset(), frozenset())


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("verb", REPORTS)
def test_a_batch_is_settled_as_a_whole(verb: str, perform: Perform, worker: int) -> None:
    leases = running(worker, 20)
    assert perform(report(verb, leases[::-1], worker)) == settled(*leases)
    assert scalar("select count(*) from shiftboss_job where state = 'running'") == 0


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("verb", REPORTS)
def test_an_empty_batch_is_nothing(verb: str, perform: Perform, worker: int) -> None:
    assert perform(report(verb, [], worker)) == Settlement()


@pytest.mark.requirement("R7", "L5")
@pytest.mark.parametrize("bad", ['"a\\u0000b"', '"\\ud800"', "{", "NaN", "raw\x00nul", ""])
def test_a_result_that_cannot_be_stored_fails_its_own_job_only(bad: str, perform: Perform, worker: int) -> None:
    leases = running(worker, 7)
    items = [(one, Done(bad if one is leases[4] else '"fine"', 5)) for one in leases]
    assert perform(lease.complete(items, authority=SYSTEM, worker_id=worker)) == settled(*leases)
    assert [finished(one.job_id) is not None for one in leases] == [True] * 4 + [False] + [True] * 2
    row = a_row(leases[4].job_id)
    assert (row["state"], row["failures"], row["error_code"]) == ("retryable", 1, "result_not_storable")
    [attempt] = attempts(leases[4].job_id)
    assert (attempt["outcome"], attempt["run_ms"]) == ("failed", 5)


@pytest.mark.requirement("L5", "L29")
def test_a_failure_that_cannot_be_stored_is_still_a_failure(perform: Perform, worker: int) -> None:
    leases = running(worker, 3)
    bad = replace(FAILED, traceback="a\x00b", message="a\x00b")
    items = [(one, bad if one is leases[1] else FAILED) for one in leases]
    assert perform(lease.fail(items, authority=SYSTEM, worker_id=worker)) == settled(*leases)
    codes = rows("select error_code from shiftboss_job where state = 'retryable' order by id")
    assert codes == [("handler_raised",), ("error_not_storable",), ("handler_raised",)]


UNSTORABLE: dict[str, tuple[Any, str | None]] = {
    "release": (Released("shut\x00down"), "shut\ufffddown"),
    "discard": (replace(DISCARDED, message="no\x00 \udce9"), "no\ufffd ?"),
    "quarantine": (replace(QUARANTINED, message="no\x00 \udce9"), "no\ufffd ?"),
    "reap_own": (replace(LOST, message="killed\x00", evidence="{"), "killed\ufffd"),
}


@pytest.mark.requirement("L5", "L29")
@pytest.mark.parametrize("verb", UNSTORABLE)
def test_an_end_in_words_that_cannot_be_stored_is_told_in_others(verb: str, perform: Perform, worker: int) -> None:
    leases = running(worker, 5)
    function, fine = REPORTS[verb]
    bad, text = UNSTORABLE[verb]
    items = [(one, bad if one is leases[2] else fine) for one in leases]
    for _ in range(2):
        assert perform(function(items, authority=SYSTEM, worker_id=worker)) == settled(*leases)
    [attempt] = attempts(leases[2].job_id)
    assert attempt["outcome"] == attempts(leases[1].job_id)[0]["outcome"]
    assert text in (attempt["error_code"], attempt["error_message"])
    assert attempt["evidence"] == ('{"not_storable": "{"}' if verb == "reap_own" else "{}")
    assert state(leases[2].job_id) == state(leases[1].job_id)
    assert events(leases[2].job_id) == []


@pytest.mark.requirement("L5", "R7")
@pytest.mark.parametrize("bad", ['"\udce9"', "[" * 50_000 + "]" * 50_000])
def test_a_result_that_python_or_the_server_cannot_bear_fails_its_own_job_only(
    bad: str, perform: Perform, worker: int
) -> None:
    leases = running(worker, 4)
    items = [(one, Done(bad if one is leases[1] else "1", 5)) for one in leases]
    assert perform(lease.complete(items, authority=SYSTEM, worker_id=worker)) == settled(*leases)
    assert a_row(leases[1].job_id)["error_code"] == "result_not_storable"


@pytest.fixture
def refusing() -> Iterator[Callable[[str], None]]:
    """Makes the history raise an error of this code for the result "bad"."""

    def refuse(code: str) -> None:
        execute(
            "create function pg_temp_refuse() returns trigger language plpgsql as "
            f"$$ begin raise exception 'refused' using errcode = '{code}'; end $$"
        )
        execute(
            "create trigger refuse before insert on shiftboss_finished for each row "
            "when (new.result = '\"bad\"') execute function pg_temp_refuse()"
        )

    yield refuse
    execute("drop function pg_temp_refuse cascade")


@pytest.mark.requirement("L5", "R7")
@pytest.mark.parametrize("code", ["53200", "54000", "54001"])
def test_an_outcome_that_is_too_much_for_the_server_fails_its_own_job_only(
    code: str, refusing: Callable[[str], None], perform: Perform, worker: int
) -> None:
    refusing(code)
    leases = running(worker, 5)
    items = [(one, Done('"bad"' if one is leases[3] else "1", 5)) for one in leases]
    assert perform(lease.complete(items, authority=SYSTEM, worker_id=worker)) == settled(*leases)
    assert a_row(leases[3].job_id)["error_code"] == "result_not_storable"


@pytest.mark.requirement("L5")
def test_an_end_that_takes_too_long_holds_up_no_other_and_is_offered_again(
    refusing: Callable[[str], None], keepers_connection: Session, worker: int
) -> None:
    refusing("57014")
    leases = running(worker, 5)
    items = [(one, Done('"bad"' if one is leases[3] else "1", 5)) for one in leases]
    with pytest.raises(StoreUnavailable):
        keepers_connection.run(lease.complete(items, authority=SYSTEM, worker_id=worker))
    assert [finished(one.job_id) is not None for one in leases[:3]] == [True] * 3
    assert a_row(leases[3].job_id)["state"] == "running"


@pytest.mark.requirement("S8", "N9")
@pytest.mark.parametrize(("first", "other"), [("1", "2"), ("1", None), (None, "1"), (None, "null"), ("1", "{")])
def test_a_repeat_with_another_result_is_refused(
    first: str | None, other: str | None, perform: Perform, worker: int
) -> None:
    [held] = running(worker)
    perform(lease.complete([(held, Done(first, 5))], authority=SYSTEM, worker_id=worker))
    before = whole(held.job_id)
    answer = perform(lease.complete([(held, Done(other, 5))], authority=SYSTEM, worker_id=worker))
    assert answer == Settlement(lost={held})
    assert whole(held.job_id) == before
    assert [event["kind"] for event in events(held.job_id)] == ["write_rejected"]


@pytest.mark.requirement("S8", "L27")
@pytest.mark.parametrize(
    ("first", "again"), [(None, None), ("null", "null"), ('{"a":1,"b":2}', '{"b": 2, "a": 1.0}')]
)
def test_a_repeat_with_the_same_result_is_settled(
    first: str | None, again: str | None, perform: Perform, worker: int
) -> None:
    [held] = running(worker)
    for result in (first, again):
        answer = perform(lease.complete([(held, Done(result, 5))], authority=SYSTEM, worker_id=worker))
        assert answer == settled(held)


@pytest.mark.requirement("S8", "R7")
def test_another_result_after_one_that_was_not_storable_is_refused(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    perform(lease.complete([(held, Done("{", 5))], authority=SYSTEM, worker_id=worker))
    answer = perform(lease.complete([(held, Done("1", 5))], authority=SYSTEM, worker_id=worker))
    assert answer == Settlement(lost={held})


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("seconds", [float("nan"), 1e300])
def test_a_backoff_that_no_date_can_hold_is_still_a_failure(seconds: float, perform: Perform, worker: int) -> None:
    [held] = running(worker)
    answer = perform(
        lease.fail([(held, replace(FAILED, backoff_seconds=seconds))], authority=SYSTEM, worker_id=worker)
    )
    assert answer == settled(held)
    assert a_row(held.job_id)["state"] == "retryable"


@pytest.mark.requirement("R8", "N3")
def test_a_failure_without_a_backoff_is_held_at_once_and_keeps_its_evidence(perform: Perform, worker: int) -> None:
    final, other = running(worker, 2)
    items = [(final, replace(FAILED, backoff_seconds=None)), (other, replace(FAILED, backoff_seconds=0.0))]
    assert perform(lease.fail(items, authority=SYSTEM, worker_id=worker)) == settled(final, other)
    row = a_row(final.job_id)
    assert (row["state"], row["quarantine_reason"], row["failures"]) == ("quarantined", "failures_exhausted", 1)
    assert row["due_at"] <= scalar("select clock_timestamp()")
    assert [attempt["traceback"] for attempt in attempts(final.job_id)] == [FAILED.traceback]
    row = a_row(other.job_id)
    assert (row["state"], row["quarantine_reason"], row["quarantined_at"]) == ("retryable", None, None)


@pytest.mark.requirement("S8", "L27")
@pytest.mark.parametrize("verb", REPORTS)
def test_an_identical_repeat_is_answered_as_the_first_was(verb: str, perform: Perform, worker: int) -> None:
    leases = running(worker, 3)
    first = perform(report(verb, leases, worker))
    before = [whole(one.job_id) for one in leases]
    assert perform(report(verb, leases, worker)) == first
    assert perform(report(verb, leases[0], worker)) == settled(leases[0])
    assert [whole(one.job_id) for one in leases] == before
    assert scalar("select count(*) from shiftboss_event") == 0


@pytest.mark.requirement("S8", "L27")
def test_a_repeat_is_settled_also_after_the_next_run_has_begun(perform: Perform, worker: int, other: int) -> None:
    [held] = running(worker)
    perform(report("release", held, worker))
    claimed(other)
    before = whole(held.job_id)
    assert perform(report("release", held, worker)) == settled(held)
    assert whole(held.job_id) == before


@pytest.mark.requirement("S8", "L27", "R7")
def test_the_repeat_of_a_result_that_was_not_storable_is_settled(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    items = [(held, Done('"\\u0000"', 5))]
    first = perform(lease.complete(items, authority=SYSTEM, worker_id=worker))
    before = whole(held.job_id)
    assert perform(lease.complete(items, authority=SYSTEM, worker_id=worker)) == first == settled(held)
    assert whole(held.job_id) == before


@pytest.mark.requirement("S8", "N9")
@pytest.mark.parametrize(("first", "second"), list(permutations(REPORTS, 2)))
def test_a_different_end_of_the_same_run_is_refused(
    first: str, second: str, perform: Perform, worker: int
) -> None:
    [held] = running(worker)
    perform(report(first, held, worker))
    before = whole(held.job_id)
    assert perform(report(second, held, worker)) == Settlement(lost={held})
    assert whole(held.job_id) == before
    assert [event["kind"] for event in events(held.job_id)] == ["write_rejected"]


@pytest.mark.requirement("L5")
def test_part_of_a_batch_settled_earlier_and_part_lost(perform: Perform, worker: int, other: int) -> None:
    done, held, foreign = [*running(worker, 2), *running(other)]
    perform(report("complete", done, worker))
    answer = perform(report("complete", [foreign, held, done], worker))
    assert answer == Settlement(settled={done, held}, lost={foreign})


@pytest.mark.requirement("L5")
def test_ends_of_many_kinds_leave_other_jobs_alone(worker: int) -> None:
    [bystander] = running(worker)
    before = whole(bystander.job_id)
    for verb in REPORTS:
        [held] = running(worker)
        run(report(verb, held, worker))
    assert whole(bystander.job_id) == before


@pytest.mark.requirement("L4", "L5")
@pytest.mark.parametrize("verb", REPORTS)
def test_two_leases_of_one_job_in_one_batch_are_judged_each(verb: str, perform: Perform, worker: int) -> None:
    old = NOT_HELD["available"](worker)
    [new] = [job.lease for job in claimed(worker)]
    stale = NOT_HELD["missing"](worker)._replace(job_id=old.job_id, fence=99)
    answer = perform(report(verb, [stale, new], worker))
    assert answer == Settlement(settled={new}, lost={stale})
    assert [event["fence"] for event in events(old.job_id)] == [99]


@pytest.mark.requirement("L4", "L3")
def test_two_leases_of_one_job_in_one_heartbeat_are_answered_each(perform: Perform, worker: int) -> None:
    old = NOT_HELD["running under a newer fence"](worker)
    new = old._replace(fence=old.fence + 1)
    answer = perform(lease.heartbeat([old, new], authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert (answer.renewed, answer.busy, answer.lost) == ({new}, frozenset(), {old})
