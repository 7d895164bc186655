"""Rolling restarts in the record: one at a time, step by step, each under the lease of its host's agent."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from shiftboss import Owner, Scoped
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import hosts, processes, rolls, workers
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.rolls import Begun, Move, RollRow, Step, StepRow
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, a_host, execute, running, scalar
from tests.store.sessions import together
from tests.store.test_workers import REGISTRATION
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("L28", "L31")

DRAINING, STARTING, PROVING = Move(to="draining"), Move(to="starting"), Move(to="proving")
DONE = Move(to="done", worker_id=7, code_version="v2")
FAILED = Move(to="failed", why="exit code 1")


def worker(number: int, pool: str = "default", **more: Any) -> dict[str, Any]:
    """One worker of a host's picture."""
    return {"name": f"worker-{pool}-{number}", "pool": pool, "launcher": 100 + number, "pid": 200 + number} | more


PROGRAMS = [
    {"name": "web", "pool": None},
    worker(2),
    worker(10),
    worker(1),
    worker(3, launcher=None, pid=None),
    worker(1, "heavy"),
]


@pytest.fixture
def fence(record: None) -> int:
    """That of the agent of a host with three workers of a pool and one of another."""
    return a_host(programs=PROGRAMS)


def begun(pool: str | None = "default", **more: Any) -> Begun:
    """What comes of beginning a roll."""
    return run(rolls.begin(pool, authority=SYSTEM, by="kim", reason="new code", **more))


def step(host: str = "web-1") -> Step | None:
    """What the agent of a host has to do."""
    return run(rolls.step(authority=SYSTEM, host=host))


def moved(to: Move, *, fence: int, host: str = "web-1", of: Step | None = None) -> bool:
    """Whether the step of a host came into this state."""
    of = of or step(host)
    return of is not None and run(rolls.move(of, to, authority=SYSTEM, host=host, fence=fence))


def told(begun: Begun) -> RollRow:
    """The roll as it stands."""
    row = run(rolls.roll(begun.id or 0, authority=SYSTEM))
    assert row
    return row


def steps(begun: Begun) -> list[StepRow]:
    """Its steps."""
    return run(rolls.steps(begun.id or 0, authority=SYSTEM))


def silent(seconds: int, host: str = "web-1") -> None:
    """The agent of a host has said nothing for so long."""
    execute(f"update shiftboss_host set heartbeat_at = now() - interval '{seconds} seconds' where name = %s", host)


def test_a_roll_goes_from_worker_to_worker_in_their_order(fence: int, perform: Perform) -> None:
    roll = perform(rolls.begin("default", authority=SYSTEM, by="kim", reason="new code"))
    assert (roll.steps, roll.running, roll.silent) == (3, None, [])
    assert [one.program for one in steps(roll)] == ["worker-default-1", "worker-default-2", "worker-default-10"]
    for number, program in enumerate(("worker-default-1", "worker-default-2", "worker-default-10"), 1):
        assert (told(roll).state, told(roll).done) == ("running", number - 1)
        of = step()
        assert of
        assert (of.program, of.number, of.state) == (program, number, "waiting")
        for to in (DRAINING, STARTING, PROVING, DONE):
            assert moved(to, fence=fence)
    assert (told(roll).state, told(roll).done, told(roll).code_after) == ("done", 3, ["v2"])
    assert step() is None
    assert {(one.state, one.worker_after) for one in steps(roll)} == {("done", 7)}
    assert [row.id for row in run(rolls.rolls(authority=SYSTEM))] == [roll.id]


def test_all_pools_are_rolled_at_once_where_none_is_named(fence: int) -> None:
    assert [one.program for one in steps(begun(None))][-1] == "worker-heavy-1"


def test_of_two_that_begin_at_once_one_rolls(fence: int, connect: Any) -> None:
    sessions = [connect(), connect()]
    verb = [
        lambda s=session, p=pool: s.run(rolls.begin(p, authority=SYSTEM, by="kim", reason="r"))
        for session, pool in zip(sessions, ("default", "heavy"), strict=True)
    ]
    first, second = sorted(together(*verb), key=lambda one: one.id is None)
    assert first.id
    assert second.id is None
    assert begun().running == first.id


def test_of_two_agents_that_move_a_step_at_once_one_has_moved_it(fence: int, connect: Any) -> None:
    begun()
    of = step()
    assert of
    sessions = [connect(), connect()]
    verb = [
        lambda s=session: s.run(rolls.move(of, DRAINING, authority=SYSTEM, host="web-1", fence=fence))
        for session in sessions
    ]
    assert sorted(together(*verb)) == [False, True]


def test_only_the_agent_of_the_host_moves_its_step(fence: int) -> None:
    begun()
    of = step()
    other = a_host("web-2")
    assert not moved(DRAINING, fence=fence + 1)
    assert not moved(DRAINING, fence=other, host="web-2", of=of)
    silent(11)
    assert not moved(DRAINING, fence=fence)
    again = a_host(programs=PROGRAMS)
    assert moved(DRAINING, fence=again)


def test_the_next_agent_goes_on_where_one_has_died(fence: int) -> None:
    begun()
    assert moved(Move(to="draining", launcher=77), fence=fence)
    silent(11)
    again = a_host(programs=PROGRAMS)
    of = step()
    assert of
    assert (of.state, of.launcher) == ("draining", 77)
    assert moved(STARTING, fence=again)
    assert not moved(STARTING, fence=again, of=of)


def test_no_worker_is_touched_before_those_before_it_have_proved_themselves(fence: int) -> None:
    other = a_host("web-2", programs=[worker(1)])
    roll = begun()
    assert [one.host for one in steps(roll)] == ["web-1"] * 3 + ["web-2"]
    assert step("web-2") is None
    of = step()
    assert of
    last = Step(of.roll_id, 4, *[getattr(of, name) for name in Step.__slots__[2:]])
    assert not moved(DRAINING, fence=other, host="web-2", of=last)
    for _ in range(3):
        for to in (DRAINING, STARTING, PROVING, DONE):
            assert moved(to, fence=fence)
    assert step() is None
    assert moved(DRAINING, fence=other, host="web-2")


def test_one_that_does_not_come_up_stops_the_roll_and_says_why(fence: int) -> None:
    roll = begun()
    for to in (DRAINING, STARTING, FAILED):
        assert moved(to, fence=fence)
    row = told(roll)
    assert (row.state, row.why) == ("stopped", "worker-default-1 on web-1: exit code 1")
    assert row.ended_at
    assert [one.state for one in steps(roll)] == ["failed", "waiting", "waiting"]
    assert step() is None
    assert begun().id


def test_who_cancels_touches_no_further_worker_and_leaves_none_down(fence: int, perform: Perform) -> None:
    roll = begun()
    assert moved(DRAINING, fence=fence)
    assert perform(rolls.cancel(roll.id or 0, authority=SYSTEM)) == ("running", True)
    assert perform(rolls.cancel(roll.id or 0, authority=SYSTEM)) == ("cancelled", False)
    assert run(rolls.cancel(987654, authority=SYSTEM)) is None
    for to in (STARTING, PROVING, DONE):
        assert moved(to, fence=fence)
    assert step() is None
    assert told(roll).state == "cancelled"
    assert [one.state for one in steps(roll)] == ["done", "waiting", "waiting"]
    second = begun()
    of = step()
    assert of
    assert run(rolls.cancel(second.id or 0, authority=SYSTEM)) == ("running", True)
    assert not moved(DRAINING, fence=fence, of=of)


def test_what_is_in_hand_of_an_old_roll_comes_before_the_next_one(fence: int) -> None:
    roll = begun()
    assert moved(DRAINING, fence=fence)
    run(rolls.cancel(roll.id or 0, authority=SYSTEM))
    assert begun().id
    of = step()
    assert of
    assert (of.roll_id, of.state) == (roll.id, "draining")
    assert moved(FAILED, fence=fence)
    assert [row.state for row in run(rolls.rolls(authority=SYSTEM))] == ["running", "cancelled"]


def test_a_host_of_which_nobody_hears_stops_the_roll(fence: int) -> None:
    roll = begun()
    other = a_host("web-2")
    stopping: dict[str, Any] = {"authority": SYSTEM, "host": "web-2", "fence": other}
    assert run(rolls.stop_silent(**stopping)) is None
    silent(30)
    assert 29 < (told(roll).silent_seconds or 0) < 60
    assert run(rolls.stop_silent(**stopping)) is None
    silent(61)
    assert run(rolls.stop_silent(**stopping | {"fence": other + 1})) is None
    assert run(rolls.stop_silent(**stopping)) == roll.id
    assert (told(roll).state, told(roll).why) == ("stopped", "the agent of web-1 is silent")
    assert run(rolls.stop_silent(**stopping)) is None


def earlier() -> Begun:
    """A roll that has stopped at its first worker."""
    old = begun(None)
    of = step()
    assert of
    run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=the_fence(), why="earlier"))
    return old


def test_what_is_said_of_an_earlier_roll_is_not_taken_for_the_one_that_runs(fence: int) -> None:
    begun(None)
    of = step()
    assert of
    assert run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=fence, why="earlier"))
    roll = begun()
    assert not run(rolls.move(of, DRAINING, authority=SYSTEM, host="web-1", fence=fence))
    assert not run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=fence, why="again"))
    assert run(rolls.cancel(of.roll_id, authority=SYSTEM)) == ("stopped", False)
    assert told(roll).state == "running"
    assert {one.state for one in steps(roll)} == {"waiting"}


def test_a_silent_host_that_an_earlier_roll_had_not_come_to_stops_no_other(fence: int) -> None:
    old = earlier()
    execute("update shiftboss_roll_step set number = number - 10 where roll_id = %s", old.id)
    silent(61)
    other = a_host("web-2", programs=[worker(1)])
    roll = begun()
    assert {one.host for one in steps(roll)} == {"web-2"}
    assert run(rolls.stop_silent(authority=SYSTEM, host="web-2", fence=other)) is None


def the_fence() -> int:
    """That of the first host's agent."""
    return int(scalar("select fence from shiftboss_host where name = 'web-1'"))


@pytest.mark.parametrize("end", ["done", "failed", "cancelled", "stopped", "silent"])
def test_a_roll_leaves_an_earlier_one_as_it_was(fence: int, end: str) -> None:
    old = earlier()
    before = told(old), steps(old)
    roll = begun()
    assert begun().running == roll.id
    match end:
        case "done":
            for _ in range(3):
                for to in (DRAINING, STARTING, PROVING, DONE):
                    assert moved(to, fence=fence)
        case "failed":
            for to in (DRAINING, FAILED):
                assert moved(to, fence=fence)
        case "cancelled":
            assert run(rolls.cancel(roll.id or 0, authority=SYSTEM))
        case "stopped":
            of = step()
            assert of
            assert run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=fence, why="r"))
        case "silent":
            other = a_host("web-2")
            silent(61)
            assert run(rolls.stop_silent(authority=SYSTEM, host="web-2", fence=other)) == roll.id
    assert told(roll).state == {"failed": "stopped", "silent": "stopped"}.get(end, end)
    assert (told(old), steps(old)) == before


def test_only_an_agent_that_has_its_host_says_anything_of_a_roll(fence: int) -> None:
    roll = begun()
    of = step()
    assert of
    other = a_host("web-2")

    def refused(host: str, with_fence: int) -> None:
        holder: dict[str, Any] = {"authority": SYSTEM, "host": host, "fence": with_fence}
        assert not run(rolls.move(of, DRAINING, **holder))
        assert not run(rolls.stop(of, why="r", **holder))
        assert run(rolls.stop_silent(seconds=-1.0, **holder)) is None
        assert run(rolls.forget_rolls(**holder)) == 0
        assert told(roll).state == "running"

    refused("web-9", fence)
    run(hosts.leave("web-2", authority=SYSTEM, fence=other))
    refused("web-2", other)
    run(hosts.leave("web-1", authority=SYSTEM, fence=fence))
    refused("web-1", fence)
    again = a_host(programs=PROGRAMS)
    silent(11)
    refused("web-1", again)


def test_one_whose_next_host_lives_is_not_stopped_for_one_that_is_done(fence: int) -> None:
    other = a_host("web-2", programs=[worker(1)])
    begun()
    for _ in range(3):
        for to in (DRAINING, STARTING, PROVING, DONE):
            assert moved(to, fence=fence)
    silent(61)
    assert run(rolls.stop_silent(authority=SYSTEM, host="web-2", fence=other)) is None


def test_a_cancelled_roll_stays_cancelled_whatever_becomes_of_what_it_has_in_hand(fence: int) -> None:
    roll = begun()
    assert moved(DRAINING, fence=fence)
    run(rolls.cancel(roll.id or 0, authority=SYSTEM))
    assert moved(FAILED, fence=fence)
    assert (told(roll).state, told(roll).why) == ("cancelled", None)


def test_who_cancels_at_the_same_moment_comes_before_the_next_worker(fence: int, connect: Any) -> None:
    roll, of = begun(), step()
    assert of
    person, agent = connect(), connect()
    person.execute("begin")
    assert person.run(rolls.cancel(roll.id or 0, authority=SYSTEM)) == ("running", True)
    answers: list[bool] = []

    def move() -> None:
        answers.append(agent.run(rolls.move(of, DRAINING, authority=SYSTEM, host="web-1", fence=fence)))

    thread = threading.Thread(target=move)
    thread.start()
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
    wait_for(lambda: answers or scalar(waits, agent.pid), seconds=20)
    person.execute("commit")
    thread.join(timeout=20)
    assert answers == [False]


def test_versions_are_those_of_the_workers_that_run(fence: int) -> None:
    registered(201, "v1")
    stranger = replace(REGISTRATION, host="web-7", pid=201, code_version="v8")
    run(workers.register(stranger, authority=SYSTEM, tasks=[]))
    registered(999, "v9")
    gone = registered(201, "v7")
    execute("update shiftboss_worker set state = 'stopped', stopped_at = now() where id = %s", gone)
    assert steps(begun())[0].code_before == "v1"


def test_hosts_that_left_or_were_silent_for_a_day_are_not_missed(fence: int) -> None:
    for name in ("web-2", "web-3"):
        other = a_host(name, programs=[worker(1)])
        if name == "web-2":
            run(hosts.leave(name, authority=SYSTEM, fence=other))
    silent(86_401, "web-3")
    assert begun().silent == []


def test_a_host_does_not_stop_the_roll_for_its_own_silence(fence: int) -> None:
    roll = begun()
    silent(61)
    again = a_host(programs=PROGRAMS)
    assert run(rolls.stop_silent(authority=SYSTEM, host="web-1", fence=again)) is None
    assert told(roll).state == "running"


def test_hosts_that_are_silent_are_left_out_and_named(fence: int) -> None:
    a_host("web-2", programs=[worker(1)])
    silent(11, "web-2")
    roll = begun()
    assert roll.silent == told(roll).silent == ["web-2"]
    assert {one.host for one in steps(roll)} == {"web-1"}


def test_nothing_is_begun_where_no_worker_is_up_or_no_agent_answers(fence: int) -> None:
    assert begun("none") == Begun(None, 0, None, [])
    silent(11)
    assert begun() == Begun(None, 0, None, ["web-1"])
    assert run(rolls.rolls(authority=SYSTEM)) == []


def test_the_worker_that_comes_up_is_seen_with_its_proofs(fence: int) -> None:
    before = a_life(101, 201)
    noted(fence, before)
    registered(201, "v1")
    roll = begun(code_wanted="v2")
    assert steps(roll)[0].code_before == "v1"
    assert moved(DRAINING, fence=fence)
    assert moved(STARTING, fence=fence)
    assert proof() == (None, None, None, False, False)
    noted(fence, a_life(301, 401))
    assert proof() == (301, None, None, False, False)
    new = registered(401, "v2")
    execute("update shiftboss_worker set started_at = started_at - interval '1 second' where id = %s", new)
    execute("update shiftboss_worker set heartbeat_at = started_at where id = %s", new)
    assert proof() == (301, new, "v2", False, False)
    execute("update shiftboss_worker set heartbeat_at = clock_timestamp() where id = %s", new)
    assert proof() == (301, new, "v2", True, False)
    running(new)
    assert proof() == (301, new, "v2", True, True)
    execute("delete from shiftboss_job")
    execute("update shiftboss_worker set idle = true where id = %s", new)
    assert proof() == (301, new, "v2", True, True)
    of = step()
    assert of
    assert (of.code_wanted, of.waits) == ("v2", False)


def test_how_the_one_that_does_not_come_up_has_ended_is_seen(fence: int) -> None:
    noted(fence, a_life(101, 201))
    begun()
    assert moved(DRAINING, fence=fence)
    assert moved(STARTING, fence=fence)
    noted(fence, a_life(301, 401, ended=time.time(), ending="code", code=1, log="no module named shop"))
    of = step()
    assert of
    assert (of.life, of.ending, of.code, of.log) == (301, "code", 1, "no module named shop")


def test_one_that_came_up_and_has_ended_since_stops_the_roll_before_the_next_one(fence: int) -> None:
    roll = begun()
    for to in (DRAINING, STARTING, Move(to="proving", launcher_after=301), DONE):
        assert moved(to, fence=fence)
    noted(fence, a_life(301, 401))
    of = step()
    assert of
    assert (of.number, of.fallen) == (2, None)
    noted(fence, a_life(302, 402, ended=time.time(), ending="code", code=3, program="worker-default-2"))
    noted(fence, a_life(301, 401, ended=time.time(), ending="code", code=1, asked=True))
    assert (step() or of).fallen is None
    execute("update shiftboss_process set asked = false")
    of = step() or of
    assert (of.fallen, of.ending, of.code) == ("worker-default-1 on web-1", "code", 1)
    assert not run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=fence + 1, why="r"))
    assert run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=fence, why="it has ended"))
    assert not run(rolls.stop(of, authority=SYSTEM, host="web-1", fence=fence, why="again"))
    assert (told(roll).state, told(roll).why) == ("stopped", "it has ended")
    assert [one.state for one in steps(roll)] == ["done", "waiting", "waiting"]


def a_life(launcher: int, pid: int, **more: Any) -> Life:
    """One of the first worker's."""
    given: dict[str, Any] = {"program": "worker-default-1", "pool": "default", "started": time.time()} | more
    return Life(launcher=launcher, pid=pid, **given)


def noted(fence: int, *lives: Life) -> None:
    """The agent notes lives."""
    assert run(processes.note(lives, authority=SYSTEM, host="web-1", fence=fence))


def registered(pid: int, code_version: str) -> int:
    """A worker of the first host that has announced itself."""
    registration = replace(REGISTRATION, host="web-1", pid=pid, code_version=code_version)
    return run(workers.register(registration, authority=SYSTEM, tasks=["shop.task"]))


def proof() -> tuple[Any, ...]:
    """What is known of the worker that is to prove itself."""
    of = step()
    assert of
    return of.life, of.worker_id, of.code_version, of.beats, of.claims


def test_old_rolls_are_forgotten_by_an_agent(fence: int) -> None:
    old = begun()
    run(rolls.cancel(old.id or 0, authority=SYSTEM))
    execute("update shiftboss_roll set ended_at = ended_at - interval '31 days'")
    recent = earlier()
    new = begun()
    assert run(rolls.forget_rolls(authority=SYSTEM, host="web-1", fence=fence + 1)) == 0
    assert run(rolls.forget_rolls(authority=SYSTEM, host="web-9", fence=fence)) == 0
    run(hosts.leave("web-1", authority=SYSTEM, fence=fence))
    assert run(rolls.forget_rolls(authority=SYSTEM, host="web-1", fence=fence)) == 0
    fence = a_host(programs=PROGRAMS)
    assert run(rolls.forget_rolls(authority=SYSTEM, host="web-1", fence=fence)) == 1
    assert steps(old) == []
    assert [row.id for row in run(rolls.rolls(authority=SYSTEM))] == [new.id, recent.id]
    assert len(steps(new)) == 3


@pytest.mark.parametrize("authority", [Owner("kim"), Scoped(queues=["default"])])
def test_rolls_are_no_matter_of_owners_or_scopes(fence: int, authority: Any) -> None:
    begun()
    of = step()
    assert of
    for verb in (
        rolls.begin("default", authority=authority, by="kim", reason="r"),
        rolls.step(authority=authority, host="web-1"),
        rolls.move(of, DRAINING, authority=authority, host="web-1", fence=fence),
        rolls.stop(of, authority=authority, host="web-1", fence=fence, why="r"),
        rolls.stop_silent(authority=authority, host="web-1", fence=fence),
        rolls.cancel(1, authority=authority),
        rolls.roll(1, authority=authority),
        rolls.rolls(authority=authority),
        rolls.steps(1, authority=authority),
        rolls.forget_rolls(authority=authority, host="web-1", fence=fence),
    ):
        with pytest.raises(NotAllowed):
            run(verb)
