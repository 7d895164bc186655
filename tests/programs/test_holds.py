"""What the agent does to programs that are held back, by what supervisord says of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shiftboss.queue.store.holds import OpenHold
from shiftboss.supervisor_conf import control
from shiftboss.supervisor_conf import holds as duty
from shiftboss.supervisor_conf.crash_loops import Rule
from shiftboss.supervisor_conf.holds import Holds

pytestmark = pytest.mark.requirement("B2", "L28")


class Supervisord:
    """One that does nothing but to say in which state its program is, and to note what is asked of it."""

    socket, prefix = Path("/nowhere"), ""

    def __init__(self, state: str | None) -> None:
        self.state = state
        self.asked: list[str] = []
        self.answers = True

    def programs(self, socket: Path, prefix: str) -> dict[str, dict[str, Any]]:
        """Its programs by name."""
        if not self.answers:
            raise control.SupervisorUnreachable("nobody there")
        return {} if self.state is None else {"web": {"statename": self.state}}

    def begin_start(self, name: str) -> None:
        """Start it."""
        if not self.answers:
            raise control.SupervisorUnreachable("nobody there")
        self.asked.append(f"start {name}")

    def begin_stop(self, name: str) -> None:
        """Stop it."""
        self.asked.append(f"stop {name}")


def holding(supervisord: Supervisord, monkeypatch: pytest.MonkeyPatch) -> Holds:
    """The agent's duty towards it. The record is never asked."""
    monkeypatch.setattr(control, "programs", supervisord.programs)
    rule, orders, nobody = Rule(ends=3, seconds=60.0, lease_seconds=30.0), supervisord, None
    return Holds(nobody, host="web-1", orders=orders, rule=rule)  # type: ignore[arg-type]


def seen_to(
    state: str | None, monkeypatch: pytest.MonkeyPatch, *, in_force: bool, stopped: bool = False
) -> tuple[list[str], list[str]]:
    """What is asked of supervisord for a hold as it stands, and what is told of it."""
    supervisord = Supervisord(state)
    row = OpenHold(1, "web", in_force, stopped, 5.0)
    told = holding(supervisord, monkeypatch)._see_to([row])
    return supervisord.asked, [what for _, what in told]


@pytest.mark.parametrize(
    ("state", "asked", "told"),
    [
        ("RUNNING", ["stop web"], []),
        ("STARTING", ["stop web"], []),
        ("BACKOFF", ["stop web"], []),
        ("STOPPING", [], []),
        ("EXITED", [], []),
        ("STOPPED", [], ["stopped"]),
        ("FATAL", [], ["stopped"]),
        (None, [], ["stopped"]),
    ],
)
def test_who_is_to_be_held_is_stopped_once_it_can_be(
    state: str | None, asked: list[str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_to(state, monkeypatch, in_force=True) == (asked, told)


@pytest.mark.parametrize(
    ("state", "told"),
    [("RUNNING", ["by_others"]), ("STARTING", ["by_others"]), ("STOPPED", []), ("FATAL", []), ("STOPPING", [])],
)
def test_who_was_started_past_the_agent_is_left_alone(
    state: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_to(state, monkeypatch, in_force=True, stopped=True) == ([], told)


@pytest.mark.parametrize(
    ("state", "asked", "told"),
    [
        ("STOPPED", ["start web"], ["taken_up"]),
        ("EXITED", ["start web"], ["taken_up"]),
        ("FATAL", ["start web"], ["taken_up"]),
        ("RUNNING", [], ["taken_up"]),
        ("STOPPING", [], []),
        (None, [], ["taken_up"]),
    ],
)
def test_who_supervisord_has_given_up_is_started_again_when_its_time_is_over(
    state: str | None, asked: list[str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_to(state, monkeypatch, in_force=False) == (asked, told)
    assert seen_to(state, monkeypatch, in_force=False, stopped=True) == (asked, told)


def test_of_a_supervisord_that_does_not_answer_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisord = Supervisord("STOPPED")
    supervisord.answers = False
    held = holding(supervisord, monkeypatch)
    assert held._see_to([OpenHold(1, "web", True, False, 5.0), OpenHold(2, "web", False, True, 0.0)]) == []


def test_who_is_held_is_started_in_time_also_while_the_record_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisord = Supervisord("STOPPED")
    held = holding(supervisord, monkeypatch)
    held._known = {1: duty._Known("web", 100.0)}
    assert held.held == {"web"}

    def at(now: float) -> list[str]:
        monkeypatch.setattr(duty, "time", SimpleNamespace(monotonic=lambda: now))
        held._start_in_time()
        return supervisord.asked

    assert at(100.0 + duty.GRACE_SECONDS / 2) == []
    supervisord.answers = False
    assert at(101.0 + duty.GRACE_SECONDS) == []
    supervisord.answers = True
    assert at(102.0 + duty.GRACE_SECONDS) == ["start web"]
    assert at(103.0 + duty.GRACE_SECONDS) == ["start web"]
    assert held.held == frozenset()


def test_another_agents_holds_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    held = holding(Supervisord("STOPPED"), monkeypatch)
    held._known = {1: duty._Known("web", 100.0)}
    held.forget()
    assert held.held == frozenset()
    assert not held.knows(1)
    assert not held.knows(None)


def test_who_would_release_the_others_is_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held = holding(Supervisord("RUNNING"), monkeypatch)
    held.judge(["listener", "postgres", "first-command", "web"])
    assert held._to_judge == {"web"}
