"""The search for jobs: what is found, how far is looked, and which index serves it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from shiftboss.queue.authority import Owner, System
from shiftboss.queue.jobs import Limits
from shiftboss.queue.outcomes import Failed
from shiftboss.queue.states import LIVE, QuarantineReason, State
from shiftboss.queue.store import lease, operate
from shiftboss.queue.store import search as searching
from shiftboss.queue.store.search import (
    COMPARISONS,
    TEXTS,
    Condition,
    Order,
    Place,
    Search,
    Searched,
    search,
)
from shiftboss.queue.store.statement import run
from tests.store import making

pytestmark = pytest.mark.requirement("C4", "B8")

SYSTEM = System()


def found(*asked: Condition, limit: int = 50, **how: Any) -> Searched:
    """What a search finds."""
    given: dict[str, Any] = {"authority": SYSTEM}
    given |= {name: how.pop(name) for name in ("beyond", "backwards", "clock", "authority") if name in how}
    return run(search(Search(conditions=asked, **how), limit=limit, **given))


def ids(*asked: Condition, **how: Any) -> list[int]:
    """The ids that a search finds, in its order."""
    return [row.job.id for row in found(*asked, **how).rows]


def failed(message: str, *, queue: str = "default") -> int:
    """A job that failed as often as it may with this message; its id."""
    worker = making.a_worker(queue)
    making.enqueued(queue=queue, failure_limit=1)
    [job] = making.claimed(worker, queue=queue)
    failure = Failed("handler_raised", "smtplib.SMTPError", message, "1b0c", "Traceback…", 0.0, 412)
    run(lease.fail([(job.lease, failure)], authority=SYSTEM, worker_id=worker))
    return job.id


def test_live_and_finished_jobs_are_found_together_newest_first() -> None:
    worker = making.a_worker()
    done = making.completed(worker).job_id
    held = making.quarantined(worker).job_id
    [waits] = making.enqueued()
    assert ids() == [waits, held, done]
    assert ids(order=Order.OLDEST) == [done, held, waits]
    assert ids(states=frozenset({State.COMPLETED, State.AVAILABLE})) == [waits, done]
    assert ids(states=LIVE) == [waits, held]
    assert [row.job.state for row in found().rows] == [State.AVAILABLE, State.QUARANTINED, State.COMPLETED]


@pytest.mark.parametrize("state", list(State))
def test_each_state_is_searched_alone(state: State) -> None:
    worker = making.a_worker()
    makers = {
        State.SCHEDULED: making.scheduled,
        State.RETRYABLE: making.retryable,
        State.QUARANTINED: making.quarantined,
        State.COMPLETED: making.completed,
        State.CANCELLED: making.cancelled,
        State.DISCARDED: making.discarded,
        State.AVAILABLE: making.available,
    }
    made = {one: make(worker).job_id for one, make in makers.items()}
    made[State.RUNNING] = made.pop(State.AVAILABLE)
    assert [job.id for job in making.claimed(worker)] == [made[State.RUNNING]]
    [made[State.AVAILABLE]] = making.enqueued()
    assert ids(states=frozenset({state})) == [made[state]]
    assert set(ids(states=frozenset(State) - {state})) == set(made.values()) - {made[state]}


def test_what_is_asked_of_texts_is_met_as_it_is_said() -> None:
    [mail] = making.enqueued(queue="ma_il%", task="shop.tasks.send", tags=("a b", "nightly"), key="in_voice")
    [other] = making.enqueued(queue="maXil-", task="shop.tasks.resend")
    assert ids(Condition("queue", ["ma_il%"])) == [mail]
    assert ids(Condition("queue like", ["ma\\_il\\%"])) == [mail]
    assert ids(Condition("queue like", ["ma%"])) == [other, mail]
    assert ids(Condition("task like", ["%.send"])) == [mail]
    assert ids(Condition("tag", ["a b"])) == [mail]
    assert ids(Condition("tag like", ["night%"])) == [mail]
    assert ids(Condition("key", ["system:in_voice"])) == [mail]
    assert ids(Condition("key", ["system:in_voice"]), states=frozenset({State.AVAILABLE})) == [mail]
    assert ids(Condition("queue", ["ma_il%"], negated=True)) == [other]
    assert ids(Condition("tag", ["a b"], negated=True), Condition("queue like", ["ma%"])) == [other]


def test_a_condition_on_what_a_job_lacks_is_false_and_its_negation_true() -> None:
    [job] = making.enqueued()
    for name in ("owner", "key", "error"):
        assert ids(Condition(name, ["x"])) == []
        assert ids(Condition(name, ["x"], negated=True)) == [job]
    assert ids(Condition("run >", 5, negated=True)) == [job]


def test_errors_are_searched_in_type_and_message_without_regard_to_case() -> None:
    job = failed("No such HOST: 100%")
    making.enqueued()
    assert ids(Condition("error", ["%no such host%"])) == [job]
    assert ids(Condition("error", ["%SMTPerror%"])) == [job]
    assert ids(Condition("word", ["%100\\%%"])) == [job]
    assert ids(Condition("word", ["%100\\%x%"])) == []


def test_json_is_searched_by_its_digits_as_they_were_stored() -> None:
    [job] = making.enqueued(
        args='{"args": [7], "kwargs": {"order": {"id": 1970670598291982290}}}', meta='{"a": "b"}'
    )
    order = ("kwargs", "order", "id")
    [row] = found(
        Condition("args", ["1970670598291982290"], order),
        members=(("args", *order), ("meta", "a"), ("args", "args", "0"), ("args", "kwargs", "none")),
    ).rows
    assert (row.job.id, row.members) == (job, ["1970670598291982290", "b", "7", None])
    assert ids(Condition("args", ["1970670598291982291"], order)) == []
    assert ids(Condition("meta like", ["%"], ("a",))) == [job]


def test_times_and_lengths_of_time_are_compared() -> None:
    [later] = making.enqueued(due_in=3600)
    job = failed("no")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    assert ids(Condition("due > ago", -1800.0)) == [later]
    assert ids(Condition("enqueued <", hour_ago)) == []
    assert ids(Condition("enqueued > ago", 60.0)) == [job, later]
    assert ids(Condition("attempt >=", 1)) == [job]
    worker = making.a_worker()
    done = making.completed(worker).job_id
    assert ids(Condition("run >", 11)) == [done]
    assert ids(Condition("run >", 12)) == []
    assert ids(Condition("finished > ago", 3600.0)) == [done]
    assert ids(Condition("finished <", hour_ago)) == []


def test_quarantined_jobs_are_found_by_their_reason() -> None:
    job = failed("no")
    making.enqueued()
    assert ids(Condition("reason", [str(QuarantineReason.FAILURES_EXHAUSTED)])) == [job]
    assert ids(Condition("reason", [str(QuarantineReason.POISON)])) == []
    assert ids(Condition("reason", [str(QuarantineReason.POISON)], negated=True), states=LIVE)[-1] == job


def test_reruns_and_jobs_of_an_owner_are_found_by_their_index() -> None:
    worker = making.a_worker()
    done = making.completed(worker).job_id
    [his] = making.enqueued(authority=Owner("kim"))
    run(operate.rerun(done, authority=SYSTEM, limits=Limits(failures=5, losses=3, by_task={})))
    result = found(Condition("rerun_of", [done]))
    assert [row.job.rerun_of for row in result.rows] == [done]
    assert result.by_index
    result = found(Condition("owner", ["kim"]))
    assert [row.job.id for row in result.rows] == [his]
    assert result.by_index


def test_an_owner_finds_its_own_jobs_and_those_that_it_watches() -> None:
    [his] = making.enqueued(authority=Owner("kim"))
    [watched] = making.enqueued(authority=Owner("lee"), watchers=("kim",))
    making.enqueued(authority=Owner("lee"))
    making.enqueued()
    assert ids(authority=Owner("kim")) == [watched, his]
    assert ids(Condition("id", [his, watched]), authority=Owner("lee")) == [watched]


def test_pages_lead_down_and_up_again_without_a_gap() -> None:
    jobs = making.enqueued(7)
    first = found(limit=3)
    assert [row.job.id for row in first.rows] == jobs[:3:-1]
    assert not first.complete
    second = ids(limit=3, beyond=Place(jobs[4]))
    assert second == jobs[3:0:-1]
    assert ids(limit=3, beyond=Place(jobs[0]), backwards=True) == jobs[1:4]
    assert ids(limit=3, order=Order.OLDEST, beyond=Place(jobs[3])) == jobs[4:]


def test_jobs_that_wait_for_their_time_come_in_the_order_of_it() -> None:
    states = frozenset({State.SCHEDULED, State.RETRYABLE})
    late, soon, later = [making.enqueued(due_in=due)[0] for due in (300, 60, 900)]
    making.enqueued()
    result = found(limit=2, order=Order.DUE, states=states)
    assert [row.job.id for row in result.rows] == [soon, late]
    [_, last] = result.rows
    place = Place(last.job.id, last.job.due_at)
    assert ids(order=Order.DUE, states=states, beyond=place) == [later]
    assert ids(Condition("id", [soon]), order=Order.DUE, states=states) == [soon]
    assert ids(order=Order.DUE, states=frozenset({State.RETRYABLE})) == []


def test_available_jobs_come_in_the_order_in_which_they_are_claimed() -> None:
    asked = (Condition("queue", ["mail"]),)
    how: dict[str, Any] = {"order": Order.PRIORITY, "states": frozenset({State.AVAILABLE})}
    for priority in (0, 5, -3, 5, 0, 0):
        making.enqueued(queue="mail", priority=priority)
    making.enqueued(queue="other", priority=9)
    everything = found(*asked, **how).rows
    expected = [row.job.id for row in everything]
    assert [row.job.priority for row in everything] == [5, 5, 0, 0, 0, -3]
    worker = making.a_worker("mail")
    seen: list[int] = []
    place = None
    while page := found(*asked, limit=2, beyond=place, **how).rows:
        seen += [row.job.id for row in page]
        last = page[-1].job
        place = Place(last.id, last.due_at, last.priority)
    assert seen == expected
    assert [job.id for job in making.claimed(worker, 6, queue="mail")] == expected


@pytest.mark.parametrize("order", [Order.DUE, Order.PRIORITY])
def test_an_order_that_no_index_gives_is_refused(order: Order) -> None:
    with pytest.raises(ValueError, match="no index gives this order"):
        found(order=order)


def test_a_walk_ends_after_so_many_rows_says_how_far_it_came_and_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "ROWS", 6)
    monkeypatch.setattr(searching, "FIRST_WINDOW", 2)
    [wanted] = making.enqueued(queue="mail")
    jobs = making.enqueued(9)
    result = found(Condition("queue", ["mail"]), clock=lambda: 0.0)
    assert (result.rows, result.complete, result.by_index) == ([], False, False)
    assert result.looked == 6
    assert result.edge
    assert result.edge.id == jobs[3]
    assert result.edge.at == making.scalar("select enqueued_at from shiftboss_job where id = %s", jobs[3])
    result = found(Condition("queue", ["mail"]), beyond=result.edge, clock=lambda: 0.0)
    assert [row.job.id for row in result.rows] == [wanted]
    assert result.complete


def test_a_walk_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "FIRST_WINDOW", 2)
    making.enqueued(9)
    ticks = iter(range(10))
    result = found(Condition("queue", ["mail"]), clock=lambda: float(next(ticks)))
    assert (result.looked, result.complete) == (2, False)


def test_a_job_that_finishes_between_two_windows_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "FIRST_WINDOW", 2)
    worker = making.a_worker()
    held = making.running(worker, 3)
    making.enqueued(3, queue="other")
    verb = search(
        Search(conditions=(Condition("queue", ["default"]),)), authority=SYSTEM, limit=10, clock=lambda: 0.0
    )
    call: Any = next(verb)
    rows: list[int] = []
    finishes = iter([held[2], held[0]])
    while True:
        answer = answered(call)
        if lost := next(finishes, None):
            run(making.report("complete", lost, worker))
        try:
            call = verb.send(answer)
        except StopIteration as stop:
            rows = [row.job.id for row in stop.value.rows]
            break
    assert rows == [one.job_id for one in reversed(held)]


def answered(call: Any) -> list[Any]:
    """What the database answers to one statement of a verb."""
    with connection.cursor() as cursor:
        cursor.execute(call.composed(), call.params)
        return [call.statement.row(*row) for row in cursor.fetchall()]


HOSTILE = "x'; drop table shiftboss_job; -- %s %(limit)s {value} $1 \\ \" %"


def a_value(name: str) -> Any:
    """A value that this condition can have, as hostile as it may be."""
    if any("bigint[]" in text for text in TEXTS[name]):
        return [7]
    if any("[]" in text for text in TEXTS[name]):
        return [HOSTILE]
    if name.endswith("ago"):
        return 5.0
    if name.split()[0] in ("enqueued", "due", "started", "finished"):
        return datetime.now(UTC)
    return 5 if name.split()[-1] in COMPARISONS or name == "one batch" else HOSTILE


def test_every_condition_is_asked_of_both_tables_and_takes_its_value_as_a_parameter() -> None:
    [job] = making.enqueued()
    for name in TEXTS:
        asked = Condition(name, a_value(name), (HOSTILE, "0"))
        call: Any = next(search(Search(conditions=(asked,)), authority=SYSTEM, limit=1))
        assert HOSTILE not in call.composed()
        matched = set(ids(asked))
        assert set(ids(Condition(name, asked.value, asked.path, negated=True))) == {job} - matched, name


LOAD = """
insert into shiftboss_job (queue, task, args, state, failure_limit, loss_limit, worker_id, lease_expires_at, fence,
    quarantine_reason, quarantined_at, owner, key, batch_id, rerun_of)
select 'q', 'task', '{}', case mod(n, 8) when 0 then 'running' when 1 then 'quarantined' else 'available' end,
    5, 3, case when mod(n, 8) = 0 then 1 end, case when mod(n, 8) = 0 then now() + interval '1 hour' end, 1,
    case when mod(n, 200) = 1 then 'poison' when mod(n, 8) = 1 then 'failures_exhausted' end,
    case when mod(n, 8) = 1 then now() end,
    case when mod(n, 2) = 0 then 'owner_' || mod(n, 50) end, 'system:' || n,
    case when mod(n, 3) = 0 then n / 100 end, case when mod(n, 5) = 0 then n end
from generate_series(1, 4000) n
"""


@pytest.fixture
def loaded() -> Iterator[None]:
    """A table that was just filled. So small a one the server would rather read as a whole: that is forbidden."""
    with transaction.atomic():
        making.execute(LOAD)
        making.execute("analyze shiftboss_job")  # what was known of the table before depends on who was here
        making.execute("set local enable_seqscan = off")
        yield
        transaction.set_rollback(True)


def plan(*asked: Condition, **how: Any) -> str:
    """How the server runs the first window of a search."""
    call: Any = next(search(Search(conditions=asked, **how), authority=SYSTEM, limit=51))
    with connection.cursor() as cursor:
        cursor.execute(f"explain (costs off) {call.composed()}", call.params)
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.parametrize(
    ("asked", "states", "index"),
    [
        ((), frozenset(State), "shiftboss_job_pkey"),
        ((Condition("queue", ["none"]),), frozenset(State), "shiftboss_job_pkey"),
        ((Condition("error", ["%x%"]),), frozenset({State.AVAILABLE}), "shiftboss_job_pkey"),
        ((Condition("id", [5, 6]),), frozenset(State), "shiftboss_job_pkey"),
        ((), frozenset({State.RUNNING}), "shiftboss_job_running"),
        ((Condition("worker", [1]),), frozenset({State.RUNNING}), "shiftboss_job_running"),
        ((), frozenset({State.QUARANTINED}), "shiftboss_job_quarantined"),
        ((Condition("reason", ["poison"]),), frozenset(State), "shiftboss_job_reason"),
        ((Condition("owner", ["owner_4"]),), frozenset(State), "shiftboss_job_owner"),
        ((Condition("batch", [7]),), frozenset(State), "shiftboss_job_batch"),
        ((Condition("rerun_of", [5]),), frozenset(State), "shiftboss_job_rerun_of"),
        ((Condition("key", ["system:5"]),), frozenset({State.AVAILABLE, State.RUNNING}), "shiftboss_job_key"),
    ],
)
@pytest.mark.usefixtures("loaded")
def test_a_search_goes_by_the_index_that_serves_it(
    asked: tuple[Condition, ...], states: frozenset[State], index: str
) -> None:
    told = plan(*asked, states=states)
    assert f"using {index} on shiftboss_job" in told or f"Index Scan on {index}" in told
    assert "Seq Scan on shiftboss_job" not in told


@pytest.mark.usefixtures("loaded")
def test_the_orders_of_due_times_and_of_claims_go_by_their_indexes() -> None:
    making.execute("set local enable_bitmapscan = off")
    told = plan(order=Order.DUE, states=frozenset({State.SCHEDULED, State.RETRYABLE}))
    assert "using shiftboss_job_due on shiftboss_job" in told
    assert "Seq Scan on shiftboss_job" not in told
    told = plan(Condition("queue", ["q"]), order=Order.PRIORITY, states=frozenset({State.AVAILABLE}))
    assert "using shiftboss_job_claim on shiftboss_job" in told
    assert "Seq Scan on shiftboss_job" not in told


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("order", [Order.NEWEST, Order.OLDEST])
def test_what_few_jobs_answer_is_asked_of_the_window_and_not_of_the_table(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftboss.queue.store.search.FIRST_WINDOW", 50)
    making.execute(
        "update shiftboss_job set state = 'quarantined', quarantine_reason = 'poison', quarantined_at = now()"
        " where state = 'available'"
    )
    making.execute("analyze shiftboss_job")
    making.execute("set local enable_seqscan = on")
    told = plan(states=frozenset({State.SCHEDULED, State.AVAILABLE, State.RETRYABLE}), order=order)
    assert "using shiftboss_job_pkey on shiftboss_job" in told
    assert "Seq Scan on shiftboss_job" not in told


@pytest.mark.usefixtures("loaded")
def test_states_that_a_table_cannot_hold_leave_it_out() -> None:
    # Below stands where the last that was looked at is looked up again.
    assert "shiftboss_finished" not in plan(states=LIVE).partition("SubPlan")[0]
    assert "shiftboss_finished" not in plan(Condition("reason", ["poison"])).partition("SubPlan")[0]
    assert "shiftboss_job" not in plan(states=frozenset({State.COMPLETED})).partition("SubPlan")[0]
