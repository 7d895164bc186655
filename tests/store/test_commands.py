"""What people ask of hosts: asked of agents that live, taken once, in time, under the lease."""

from typing import Any

import pytest
from django.db import IntegrityError

from shiftboss import Owner, Scoped
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import commands, hosts
from shiftboss.queue.store.commands import Asked, Claim, CommandRow, Order
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, execute
from tests.store.sessions import together
from tests.store.test_hosts import beaten, expired, taken

pytestmark = pytest.mark.requirement("L28", "B15")

RESTART = Order(host="web-1", verb="restart", program="web")
SCALE = Order(host="web-1", verb="scale", pool="default", count=2)
PROGRAMS = [{"name": "web", "pool": None}, {"name": "worker-default-1", "pool": "default"}]


@pytest.fixture
def fence(record: None) -> int:
    """That of a host's agent, which has seen its programs."""
    fence = taken()
    beaten(fence, programs=PROGRAMS)
    return fence


def asked(order: Order = RESTART, *, seconds: float = 30.0) -> Asked:
    """What came of asking."""
    return run(commands.ask(order, authority=SYSTEM, by="kim", seconds=seconds))


def claimed(fence: int, host: str = "web-1") -> list[Claim]:
    """What the agent takes."""
    return run(commands.claim(authority=SYSTEM, host=host, fence=fence))


def told(number: int | None) -> CommandRow:
    """The command as it stands."""
    row = run(commands.command(number or 0, authority=SYSTEM))
    assert row
    return row


def test_a_command_is_asked_taken_and_answered(fence: int, perform: Perform) -> None:
    answer = perform(commands.ask(RESTART, authority=SYSTEM, by="kim"))
    assert answer.id
    assert (told(answer.id).state, told(answer.id).asked_by) == ("waiting", "kim")
    [claim] = perform(commands.claim(authority=SYSTEM, host="web-1", fence=fence))
    assert claim == Claim(answer.id, "restart", "web", None, None)
    assert perform(commands.say(claim.id, authority=SYSTEM, fence=fence, progress="it stops"))
    assert (told(claim.id).state, told(claim.id).progress) == ("claimed", "it stops")
    assert perform(
        commands.end(claim.id, authority=SYSTEM, fence=fence, failed=False, result={"state": "RUNNING"})
    )
    assert (told(claim.id).state, told(claim.id).result) == ("done", {"state": "RUNNING"})
    assert not perform(commands.end(claim.id, authority=SYSTEM, fence=fence, failed=True, result={}))
    assert not perform(commands.say(claim.id, authority=SYSTEM, fence=fence, progress="again"))
    assert told(claim.id).state == "done"


def test_commands_are_taken_once_and_in_their_order(fence: int) -> None:
    first, second = asked().id, asked(SCALE).id
    assert [(one.id, one.pool, one.count) for one in claimed(fence)] == [
        (first, None, None),
        (second, "default", 2),
    ]
    assert claimed(fence) == []
    assert [row.id for row in run(commands.commands(authority=SYSTEM, host="web-1"))] == [second, first]


def test_of_two_that_take_at_once_one_has_it(fence: int, connect: Any) -> None:
    number = asked().id
    sessions = [connect(), connect()]
    take = [
        lambda s=session: s.run(commands.claim(authority=SYSTEM, host="web-1", fence=fence))
        for session in sessions
    ]
    assert [claim.id for claims in together(*take) for claim in claims] == [number]


def test_what_nobody_has_taken_in_time_is_not_done_any_more(fence: int) -> None:
    number = asked(seconds=0.0).id
    assert claimed(fence) == []
    assert told(number).state == "expired"


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (Order(host="web-2", verb="start", program="web"), Asked(None, False, False, False)),
        (Order(host="web-1", verb="start", program="none"), Asked(None, True, True, False)),
        (Order(host="web-1", verb="scale", pool="heavy", count=1), Asked(None, True, True, False)),
    ],
)
def test_nothing_is_asked_of_what_is_not_there(fence: int, order: Order, why: Asked) -> None:
    assert asked(order) == why
    assert run(commands.commands(authority=SYSTEM)) == []


def test_nothing_is_asked_of_a_host_whose_agent_is_silent(fence: int) -> None:
    expired()
    assert asked() == Asked(None, True, False, True)


def test_only_the_agent_of_the_host_takes_what_is_asked_of_it(fence: int) -> None:
    asked()
    assert claimed(fence + 1) == []
    assert claimed(fence, host="web-2") == []
    expired()
    assert claimed(fence) == []
    assert claimed(taken())


def test_of_what_an_agent_took_that_is_gone_nobody_knows(fence: int) -> None:
    number = asked().id
    claimed(fence)
    expired()
    assert told(number).state == "lost"
    taken()
    assert told(number).state == "lost"
    assert run(commands.end(number or 0, authority=SYSTEM, fence=fence, failed=False, result={}))
    assert told(number).state == "done"


@pytest.mark.parametrize(
    "order",
    [
        Order(host="web-1", verb="reboot", program="web"),
        Order(host="web-1", verb="scale", pool="default"),
        Order(host="web-1", verb="scale", pool="default", program="web", count=1),
        Order(host="web-1", verb="start", program="web", count=1),
    ],
)
def test_an_order_that_says_nothing_clear_cannot_be_kept(fence: int, order: Order) -> None:
    with pytest.raises(IntegrityError):
        asked(order)


def test_old_commands_are_forgotten_by_the_agent(fence: int) -> None:
    old, new = asked().id, asked().id
    execute("update shiftboss_command set asked_at = asked_at - interval '8 days' where id = %s", old)
    assert run(commands.forget_commands(authority=SYSTEM, host="web-1", fence=fence + 1)) == 0
    assert run(commands.forget_commands(authority=SYSTEM, host="web-1", fence=fence)) == 1
    assert told(new).id == new


@pytest.mark.parametrize("authority", [Owner("kim"), Scoped(queues=["default"])])
def test_commands_are_no_matter_of_owners_or_scopes(fence: int, authority: Any) -> None:
    for verb in (
        commands.ask(RESTART, authority=authority, by="kim"),
        commands.claim(authority=authority, host="web-1", fence=fence),
        commands.command(1, authority=authority),
        commands.commands(authority=authority),
        commands.say(1, authority=authority, fence=fence, progress=""),
        commands.end(1, authority=authority, fence=fence, failed=False, result={}),
        commands.forget_commands(authority=authority, host="web-1", fence=fence),
    ):
        with pytest.raises(NotAllowed):
            run(verb)
    assert run(hosts.hosts(authority=SYSTEM))[0].alive
