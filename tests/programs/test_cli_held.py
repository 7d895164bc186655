"""`shiftboss jobs reinstate` and `discard` with `--held-for`: all jobs that are quarantined for a reason."""

import pytest

from shiftboss.acts import many
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run
from tests.programs.shell import Shell
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B6", "B15")]
FAILED = ["--held-for", "failures_exhausted"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of jobs are several batches."""
    monkeypatch.setattr(many, "BULK_BATCH", 2)


def held(n: int) -> list[int]:
    """Jobs that failed as often as they may."""
    worker = making.a_worker()
    return [making.quarantined(worker).job_id for _ in range(n)]


@pytest.mark.parametrize(("act", "after"), [("reinstate", "available"), ("discard", "discarded")])
def test_all_that_are_held_for_the_reason_are_changed_and_the_end_is_told(sh: Shell, act: str, after: str) -> None:
    jobs = held(3)
    ran = sh("jobs", act, *FAILED, "--reason", "because", "--yes", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert {making.state(job_id) for job_id in jobs} == {after}
    assert (ran.json["act"], ran.json["matching"], ran.json["changed"], ran.json["left"]) == (act, 3, 3, 0)
    assert run(audit.total(ran.json["operation"], authority=making.SYSTEM)) == 3
    assert {(row.act, row.reason, row.via) for row in run(audit.entries(authority=making.SYSTEM))} == {
        (act, "because", "cli")
    }


def test_a_dry_run_counts_them_by_reason_and_task_and_does_nothing(sh: Shell) -> None:
    jobs = held(2)
    ran = sh("jobs", "discard", *FAILED, "--dry-run")
    assert (ran.code, ran.out) == (0, "2 jobs match: held for failures_exhausted\n")
    assert sh("jobs", "discard", *FAILED, "--task", "shop.tasks.other", "--dry-run").out.startswith("0 jobs match")
    assert sh("jobs", "reinstate", "--held-for", "poison").out == "0 jobs match: held for poison\n"
    assert {making.state(job_id) for job_id in jobs} == {"quarantined"}


def test_the_end_is_told_in_the_word_of_the_act(sh: Shell) -> None:
    held(1)
    assert sh("jobs", "reinstate", *FAILED).out.startswith("1 job reinstated (operation ")


@pytest.mark.parametrize(
    "given",
    [
        ["reinstate"],
        ["reinstate", "7", *FAILED],
        ["discard", "7", "--dry-run", "--reason", "x"],
        ["reinstate", "--held-for", "nothing"],
        ["discard", *FAILED, "--yes"],
    ],
)
def test_words_that_mean_nothing_or_both_are_refused(sh: Shell, given: list[str]) -> None:
    [job_id] = held(1)
    assert sh("jobs", *given).code == 2
    assert making.state(job_id) == "quarantined"
