"""Counts of workers in the record: as a person said, as an agent found; and what an agent finds it by."""

from typing import Any

import pytest

from shiftboss import Owner, Scoped
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import commands, hosts, scales
from shiftboss.queue.store.commands import Order
from shiftboss.queue.store.scales import Pressure, ScaleRow
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, a_host, execute
from tests.store.sessions import together

pytestmark = pytest.mark.requirement("L31")

PROGRAMS: list[dict[str, Any]] = [
    {"name": "worker-default-1", "pool": "default"},
    {"name": "worker-default-2", "pool": "default", "launcher": None},
]


@pytest.fixture
def fence(record: None) -> int:
    """That of the agent of a host with one worker that is up and one that is down."""
    return a_host(programs=PROGRAMS)


def asked(count: int, fence: int) -> int:
    """The number of a command of a person's, in hand."""
    order = Order(host="web-1", verb="scale", pool="default", count=count)
    number = run(commands.ask(order, authority=SYSTEM, by="kim")).id
    assert number
    assert run(commands.claim(authority=SYSTEM, host="web-1", fence=fence))
    return number


def kept() -> tuple[int, str, bool] | None:
    """The count that is kept, of whom, and whether that was no person."""
    rows: list[ScaleRow] = run(scales.scales(authority=SYSTEM, host="web-1"))
    return (rows[0].count, rows[0].set_by, rows[0].automatic) if rows else None


def by_itself(before: int, count: int, fence: int, **more: Any) -> int | None:
    """What comes of it that the agent sets another count."""
    given: dict[str, Any] = {"host": "web-1", "workers": 1, "why": "jobs wait"} | more
    return run(scales.by_itself("default", authority=SYSTEM, fence=fence, before=before, count=count, **given))


def test_the_count_that_a_person_says_is_kept_under_the_command(fence: int, perform: Perform) -> None:
    number = asked(2, fence)
    assert not perform(scales.keep(number, authority=SYSTEM, fence=fence + 1, workers=1))
    assert kept() is None
    assert perform(scales.keep(number, authority=SYSTEM, fence=fence, workers=1))
    assert kept() == (2, "kim", False)
    later = asked(0, fence)
    assert perform(scales.keep(later, authority=SYSTEM, fence=fence, workers=1))
    assert kept() == (0, "kim", False)
    run(commands.end(number, authority=SYSTEM, fence=fence, failed=False, result={}))
    assert not perform(scales.keep(number, authority=SYSTEM, fence=fence, workers=1))
    [row] = perform(scales.scales(authority=SYSTEM))
    assert (row.host, row.pool, row.workers) == ("web-1", "default", 1)


def test_of_another_command_no_count_is_kept(fence: int) -> None:
    order = Order(host="web-1", verb="restart", program="worker-default-1")
    number = run(commands.ask(order, authority=SYSTEM, by="kim")).id
    assert run(commands.claim(authority=SYSTEM, host="web-1", fence=fence))
    assert not run(scales.keep(number or 0, authority=SYSTEM, fence=fence, workers=1))


def test_what_an_agent_finds_is_kept_and_told_as_a_command_in_hand(fence: int, perform: Perform) -> None:
    number = by_itself(1, 2, fence)
    assert number
    assert kept() == (2, "autoscaling", True)
    told = run(commands.command(number, authority=SYSTEM))
    assert told
    assert (told.state, told.verb, told.pool, told.count) == ("claimed", "scale", "default", 2)
    assert (told.asked_by, told.progress) == ("autoscaling", "jobs wait")
    assert run(commands.claim(authority=SYSTEM, host="web-1", fence=fence)) == []
    assert run(commands.end(number, authority=SYSTEM, fence=fence, failed=False, result={}))


def test_only_the_agent_whose_lease_runs_sets_a_count(fence: int) -> None:
    assert by_itself(1, 2, fence + 1) is None
    assert by_itself(1, 2, fence, host="web-9") is None
    execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '11 seconds'")
    assert by_itself(1, 2, fence) is None
    again = a_host(programs=PROGRAMS)
    run(hosts.leave("web-1", authority=SYSTEM, fence=again))
    assert by_itself(1, 2, again) is None
    assert kept() is None


def test_of_two_that_set_a_count_at_once_one_has_set_it(fence: int, connect: Any) -> None:
    by_itself(1, 2, fence)
    sessions = [connect(), connect()]
    given: dict[str, Any] = {"authority": SYSTEM, "host": "web-1", "fence": fence, "workers": 1, "why": "r"}
    verb = [
        lambda s=session, n=count: s.run(scales.by_itself("default", before=2, count=n, **given))
        for session, count in zip(sessions, (3, 1), strict=True)
    ]
    assert sorted(number is None for number in together(*verb)) == [False, True]


def test_a_person_outranks_an_agent_for_a_while(fence: int) -> None:
    run(scales.keep(asked(2, fence), authority=SYSTEM, fence=fence, workers=1))
    assert by_itself(2, 1, fence) is None
    assert kept() == (2, "kim", False)
    execute("update shiftboss_scale set set_at = set_at - interval '601 seconds'")
    assert by_itself(3, 1, fence) is None
    assert by_itself(2, 1, fence)
    assert kept() == (1, "autoscaling", True)


def test_a_count_holds_until_the_settings_say_another_number(fence: int) -> None:
    assert by_itself(1, 2, fence)
    assert by_itself(2, 3, fence, workers=4) is None
    assert by_itself(4, 5, fence, workers=4)
    assert kept() == (5, "autoscaling", True)


@pytest.fixture
def waiting(record: None) -> None:
    """Jobs that wait for a minute and for two, in two queues."""
    execute(
        "insert into shiftboss_job (queue, task, args, state, priority, failure_limit, loss_limit, due_at)"
        " values ('mail', 'send', '{}', 'available', 5, 5, 3, now() - interval '60 seconds'),"
        " ('mail', 'send', '{}', 'available', 0, 5, 3, now() - interval '120 seconds'),"
        " ('other', 'send', '{}', 'available', 0, 5, 3, now() - interval '500 seconds')"
    )


def oldest(*queues: str) -> float | None:
    """How long the oldest job waits that one more worker could take, rounded."""
    found: Pressure = run(scales.pressure("default", queues or ("mail", "none"), authority=SYSTEM))
    return None if found.oldest_seconds is None else round(found.oldest_seconds, -1)


def test_the_oldest_job_of_a_pools_queues_is_seen_whatever_its_priority(waiting: None) -> None:
    assert oldest() == 120
    assert oldest("mail", "other") == 500
    assert oldest("none") is None


def test_jobs_that_no_further_worker_could_take_are_no_pressure(waiting: None) -> None:
    execute("insert into shiftboss_queue (name, paused_at, paused_by) values ('mail', now(), 'kim')")
    assert oldest() is None
    execute("update shiftboss_queue set paused_at = null, paused_by = null, concurrency = 1")
    assert oldest() == 120
    execute("insert into shiftboss_slot (queue, job_id, fence) values ('mail', 7, 1)")
    assert oldest() is None
    execute("delete from shiftboss_queue")
    registered(tasks=["other"])
    assert oldest() is None
    registered(tasks=["send"])
    assert oldest() == 120
    execute("update shiftboss_job set deadline = now() - interval '1 second'")
    assert oldest() is None


def registered(tasks: list[str]) -> None:
    """A worker of the pool that knows these tasks."""
    from shiftboss.queue.store import workers
    from tests.store.test_workers import REGISTRATION

    run(workers.register(REGISTRATION, authority=SYSTEM, tasks=tasks))


def test_how_many_run_is_told_of_each_host_that_lives(fence: int) -> None:
    a_host("web-2", programs=[{"name": "worker-default-1", "pool": "default"}] * 3)
    a_host("web-3", programs=[{"name": "worker-heavy-1", "pool": "heavy"}])
    a_host("web-4", programs=PROGRAMS)
    execute("update shiftboss_host set stopped_at = now() where name = 'web-4'")
    found = run(scales.pressure("default", ["mail"], authority=SYSTEM))
    assert found == Pressure(None, {"web-1": (1, 2), "web-2": (3, 3)})


@pytest.mark.parametrize("authority", [Owner("kim"), Scoped(queues=["default"])])
def test_counts_are_no_matter_of_owners_or_scopes(fence: int, authority: Any) -> None:
    for verb in (
        scales.keep(1, authority=authority, fence=fence, workers=1),
        scales.by_itself(
            "default", authority=authority, host="web-1", fence=fence, before=1, count=2, workers=1, why=""
        ),
        scales.scales(authority=authority),
        scales.pressure("default", ["mail"], authority=authority),
    ):
        with pytest.raises(NotAllowed):
            run(verb)
