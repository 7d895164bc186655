"""`shiftboss jobs cancel --all`: counted first, done in batches, and exact in what it says at the end."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError

from shiftboss import acts
from shiftboss.acts import many
from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate
from shiftboss.queue.store.operate import Answer
from shiftboss.queue.store.statement import Verb, run
from tests.programs.shell import Shell
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B15")]
SYSTEM = System()
CANCEL = ["jobs", "cancel", "--all", "--queue", "mail"]
WHY = ["--reason", "wrong recipients"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of jobs are several batches."""
    monkeypatch.setattr(many, "BULK_BATCH", 2)


def states(queue: str = "mail") -> dict[str, int]:
    """How many jobs of the queue stand where."""
    return dict(
        making.rows(
            "select state, count(*) from (select state, queue from shiftboss_job union all"
            " select state, queue from shiftboss_finished) jobs where queue = %s group by 1",
            queue,
        )
    )


def test_all_that_wait_in_the_queue_are_cancelled_and_nothing_else(sh: Shell) -> None:
    making.enqueued(3, queue="mail")
    making.enqueued(2, queue="mail", due_in=3600)
    making.enqueued(2)
    ran = sh(*CANCEL, *WHY, "--yes", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    report = ran.json
    assert states() == {"cancelled": 5}
    assert states("default") == {"available": 2}
    assert run(audit.total(report.pop("operation"), authority=SYSTEM)) == 5
    assert report == {
        "act": "cancel",
        "dry_run": False,
        "matching": 5,
        "changed": 5,
        "ended": 5,
        "requested": 0,
        "left": 0,
        "interrupted": False,
    }
    assert {(e.reason, e.via, e.queue) for e in run(audit.entries(authority=SYSTEM))} == {
        ("wrong recipients", "cli", "mail")
    }


def test_a_dry_run_counts_and_wants_neither_reason_nor_terminal(sh: Shell) -> None:
    making.enqueued(3, queue="mail")
    making.enqueued(1, queue="mail", task="shop.tasks.other")
    assert sh(*CANCEL, "--dry-run").out == ("4 jobs match: queue mail, scheduled or available or retryable\n")
    ran = sh(*CANCEL, "--dry-run", "--task", "shop.tasks.other", "--format", "json")
    assert (ran.json["matching"], ran.json["changed"], ran.json["dry_run"]) == (1, 0, True)
    assert states() == {"available": 4}
    assert run(audit.entries(authority=SYSTEM)) == []


def test_where_nothing_matches_there_is_nothing_to_ask(sh: Shell) -> None:
    ran = sh(*CANCEL, *WHY, "--yes")
    assert (ran.code, ran.out) == (0, "0 jobs match: queue mail, scheduled or available or retryable\n")


def test_states_and_tasks_narrow_it_and_running_jobs_are_asked_to_end(sh: Shell) -> None:
    making.enqueued(queue="mail")
    [runs] = making.claimed(making.a_worker("mail"), queue="mail")
    making.enqueued(2, queue="mail", due_in=3600)
    ran = sh("jobs", "cancel", "--all", "--task", making.TASK, "--state", "running,available", *WHY, "--yes")
    assert ran.code == 0
    assert ran.out.startswith("1 job: 0 ended, 1 running and asked to end (operation ")
    assert states() == {"running": 1, "scheduled": 2}
    assert making.live(runs.id)["cancel_cause"] == "user"  # type: ignore[index]


def test_at_a_terminal_it_is_counted_and_asked_and_its_progress_shown(sh: Shell) -> None:
    making.enqueued(5, queue="mail")
    sh.at_a_terminal("no", "y")
    refused = sh(*CANCEL, *WHY)
    assert refused.code == 1
    assert "5 jobs match: queue mail, scheduled or available or retryable\nCancel them? [y/N] " in refused.err
    assert states() == {"available": 5}
    ran = sh(*CANCEL, *WHY)
    assert (ran.code, states()) == (0, {"cancelled": 5})
    shown = [text.strip() for text in ran.err.partition("[y/N] ")[2].split("\r")]
    for progress in ("2 of 5 (40%)", "4 of 5 (80%)", "5 of 5 (100%)"):
        assert any(text.startswith(progress) and text.endswith("jobs/s") for text in shown)
    assert shown[-1] == ""
    assert ran.out.startswith("5 jobs cancelled (operation ")


def swept(then: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `then()` happen after the first batch."""
    whole = acts.cancel_matching

    def cancel_matching(*which: Any, **by: Any) -> Iterator[acts.Swept]:
        for batch in whole(*which, **by):
            yield batch
            then()

    monkeypatch.setattr(acts, "cancel_matching", cancel_matching)


def test_ctrl_c_lets_the_batch_end_and_says_how_far_it_came(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    making.enqueued(6, queue="mail")
    before = signal.getsignal(signal.SIGINT)
    cancel = operate.cancel

    def interrupted(*ids: Any, **how: Any) -> Verb[Answer]:
        os.kill(os.getpid(), signal.SIGINT)
        return (yield from cancel(*ids, **how))

    monkeypatch.setattr(operate, "cancel", interrupted)
    ran = sh(*CANCEL, *WHY, "--yes")
    assert ran.code == 130
    assert ran.out.startswith("2 jobs cancelled; stopped by Ctrl-C; 6 matched at first (operation ")
    assert states() == {"available": 4, "cancelled": 2}
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_does_not_wait(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    making.enqueued(6, queue="mail")
    cancel = operate.cancel
    batches: list[int] = []

    def interrupted_twice(*ids: Any, **how: Any) -> Verb[Answer]:
        batches.append(1)
        if len(batches) == 1:
            return (yield from cancel(*ids, **how))
        answer = yield from cancel(*ids, **how)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return answer

    monkeypatch.setattr(operate, "cancel", interrupted_twice)
    ran = sh(*CANCEL, *WHY, "--yes")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.startswith("shiftboss: until then: 2 jobs cancelled (operation ")
    # The batch under way is as if it had not been.
    assert states() == {"available": 4, "cancelled": 2}


def test_a_database_that_breaks_off_leaves_no_doubt_about_what_was_done(
    sh: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    making.enqueued(6, queue="mail")

    def break_off() -> None:
        raise OperationalError("server closed the connection unexpectedly")

    swept(break_off, monkeypatch)
    ran = sh(*CANCEL, *WHY, "--yes")
    assert (ran.code, ran.out) == (1, "")
    assert "until then: 2 jobs cancelled (operation " in ran.err
    assert "the database broke off" in ran.err


def test_jobs_that_others_end_meanwhile_are_told_apart(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = making.enqueued(4, queue="mail")
    matching = operate.matching

    def then_gone(*which: Any, **how: Any) -> Verb[list[int]]:
        found = yield from matching(*which, **how)
        yield from operate.cancel([id for id in found if id == ids[0]], authority=SYSTEM)
        return found

    monkeypatch.setattr(operate, "matching", then_gone)
    ran = sh(*CANCEL, *WHY, "--yes")
    assert ran.code == 1
    assert ran.out.startswith("3 jobs cancelled; 1 left: moved on, or in somebody else's hands (operation ")


def test_only_states_that_live_can_be_meant(sh: Shell) -> None:
    for state in State:
        ran = sh(*CANCEL, "--state", state, "--dry-run")
        assert ran.code == (2 if state in {"completed", "cancelled", "discarded"} else 0)
