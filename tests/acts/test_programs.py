"""Acts on the programs of hosts: permitted, with a reason, in the audit, and asked of who can do it."""

from collections.abc import Callable

import pytest

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act
from shiftboss.queue.authority import Scoped
from shiftboss.queue.errors import HostSilent, InvalidJob, NoSuchProgram, NotAllowed, ReasonNeeded, RequestReused
from shiftboss.queue.store import audit, commands
from shiftboss.queue.store.audit import AuditRow
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.store import making

pytestmark = [pytest.mark.requirement("B15"), pytest.mark.django_db]

WHO = "kim of the hosts"

ON_PROGRAMS: dict[Act, Callable[..., Acted]] = {
    Act.START_PROGRAM: acts.start_program,
    Act.DRAIN_PROGRAM: acts.drain_program,
    Act.STOP_PROGRAM: acts.stop_program,
    Act.KILL_PROGRAM: acts.kill_program,
    Act.RESTART_PROGRAM: acts.restart_program,
    Act.TAIL_PROGRAM: acts.tail_program,
}


@pytest.fixture(autouse=True)
def agent() -> int:
    """A host with a program and a pool of one worker."""
    programs = [{"name": "web", "pool": None}, {"name": "worker-default-1", "pool": "default"}]
    return making.a_host(programs=programs)


def asked() -> list[commands.CommandRow]:
    """All that was asked of hosts."""
    return run(commands.commands(authority=making.SYSTEM))


def kept() -> list[AuditRow]:
    """What the audit keeps of hosts since the test began: it is never emptied."""
    return [entry for entry in run(audit.entries(authority=making.SYSTEM)) if entry.actor_name == WHO]


@pytest.mark.parametrize("act", ON_PROGRAMS)
def test_what_is_asked_of_a_program_is_a_command_and_in_the_audit(act: Act) -> None:
    acted = ON_PROGRAMS[act]("web-1", "web", by=person(WHO), reason="it leaks")
    [command] = asked()
    assert (acted.act, acted.command_id) == (act, command.id)
    assert (command.verb, command.program, command.asked_by) == (act.partition("_")[0], "web", WHO)
    [entry] = kept()
    assert (entry.act, entry.reason, entry.actor_name) == (act, "it leaks", WHO)
    assert '"host": "web-1"' in entry.asked
    assert '"program": "web"' in entry.asked


@pytest.mark.requirement("L31")
def test_a_pool_is_asked_to_be_of_a_size() -> None:
    acted = acts.scale_pool("web-1", "default", 0, by=person(WHO), reason="quiet hours")
    [command] = asked()
    assert (command.id, command.verb, command.pool, command.count) == (acted.command_id, "scale", "default", 0)
    for count in (-1, 1001):
        with pytest.raises(InvalidJob, match="0 to 1000"):
            acts.scale_pool("web-1", "default", count, by=person(WHO), reason="quiet hours")


def test_what_stops_something_wants_a_reason_and_what_looks_wants_none() -> None:
    for act, do in ON_PROGRAMS.items():
        if act in NEED_REASON:
            with pytest.raises(ReasonNeeded):
                do("web-1", "web", by=person(WHO), reason=" ")
        else:
            do("web-1", "web", by=person(WHO))
    assert {command.verb for command in asked()} == {"start", "tail"}


@pytest.mark.parametrize("act", ON_PROGRAMS)
def test_who_may_not_do_it_asks_nothing(act: Act) -> None:
    lacking = person(WHO, may=set(PERMISSIONS.values()) - {PERMISSIONS[act]})
    with pytest.raises(NotAllowed, match=PERMISSIONS[act]):
        ON_PROGRAMS[act]("web-1", "web", by=lacking, reason="r")
    assert (asked(), kept()) == ([], [])


def test_who_may_not_see_logs_looks_at_none_again() -> None:
    """Also at one that they have asked for when they still might."""
    number = acts.tail_program("web-1", "web", by=person(WHO)).command_id or 0
    making.execute("update shiftboss_command set state = 'done', fence = 1, claimed_at = now(), ended_at = now()")
    lacking = person(WHO, may=set(PERMISSIONS.values()) - {PERMISSIONS[Act.TAIL_PROGRAM]})
    with pytest.raises(NotAllowed, match="tail_program"):
        acts.tail_again(number, by=lacking)
    with pytest.raises(NotAllowed):
        acts.tail_again(number, by=person(WHO, authority=Scoped(queues=["default"])))
    assert not acts.tail_again(number, by=person("somebody else"))
    assert [command.state for command in asked()] == ["done"]
    assert acts.tail_again(number, by=person(WHO))
    assert [command.state for command in asked()] == ["waiting"]
    assert len(kept()) == 1


def test_hosts_are_for_those_who_see_the_whole() -> None:
    narrowed = person(WHO, authority=Scoped(queues=["default"]))
    with pytest.raises(NotAllowed):
        acts.restart_program("web-1", "web", by=narrowed, reason="r")
    assert (asked(), kept()) == ([], [])


@pytest.mark.parametrize(
    ("host", "program", "error", "why"),
    [
        ("web-2", "web", NoSuchProgram, "no host 'web-2'"),
        ("web-1", "/bin/sh", NoSuchProgram, "the host web-1 has no program '/bin/sh'"),
        ("web-1", "a\nb", InvalidJob, "printable"),
        ("", "web", InvalidJob, "printable"),
    ],
)
def test_what_is_not_there_is_asked_nothing(host: str, program: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        acts.start_program(host, program, by=person(WHO))
    assert (asked(), kept()) == ([], [])


def test_a_host_whose_agent_is_silent_is_asked_nothing() -> None:
    making.execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '1 minute'")
    with pytest.raises(HostSilent, match="shiftboss_listener"):
        acts.start_program("web-1", "web", by=person(WHO))
    assert (asked(), kept()) == ([], [])


def test_a_request_that_comes_twice_is_asked_once() -> None:
    request = a_request()
    first = acts.restart_program("web-1", "web", by=person(WHO), reason="r", request_id=request)
    again = acts.restart_program("web-1", "web", by=person(WHO), reason="r", request_id=request)
    assert (first.repeated, again.repeated, again.command_id) == (False, True, first.command_id)
    with pytest.raises(RequestReused):
        acts.drain_program("web-1", "web", by=person(WHO), reason="r", request_id=request)
    assert len(asked()) == 1
