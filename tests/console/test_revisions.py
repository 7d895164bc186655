"""The configuration of a job's task: shown and chosen for a rerun, in pages and the API; who may not rerun."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from shiftboss import conf
from shiftboss.queue.revision import TaskConfig
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told, user
from tests.console.test_acting import post
from tests.console.test_job import fact, shown
from tests.store.making import rows

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("L15", "L20")]

ADD = "tests.store.tasks.add"
THEN = TaskConfig(task=ADD, timeout_seconds=2.5, secrets=("<b>", "token"), discard_on=("builtins.OSError",))
NOW = TaskConfig(task=ADD)


@pytest.fixture
def caller(db: None) -> Caller:
    """A program with an operator's token."""
    return Caller(token=token_of(user("ci")))


def done() -> int:
    """A job of a task whose options have changed since."""
    return scenes.completed_job(scenes.worker(), task=ADD, revision=THEN)


def rerun_by(job_id: int) -> list[int]:
    """By which revisions a job was rerun."""
    return [revision for (revision,) in rows("select revision_id from shiftboss_job where rerun_of = %s", job_id)]


def nobody(*_: Any) -> bool:
    """An authorizer of queues."""
    return False


@pytest.fixture
def closing(settings: Any) -> Iterator[Callable[[], None]]:
    """Closes all queues: nobody may enqueue any more."""

    def close() -> None:
        settings.SHIFTBOSS = {"QUEUE_AUTHORIZER": f"{__name__}.nobody"}
        conf.get.cache_clear()

    yield close
    conf.get.cache_clear()


def test_a_jobs_page_shows_its_revision_and_what_is_not_at_its_default(browser: Client) -> None:
    assert fact(shown(browser, done()), "Revision") == (
        f"{THEN.revision} discard_on builtins.OSError, secrets <b> token, timeout_seconds 2.5"
    )
    assert fact(shown(browser, scenes.job(revision=NOW)), "Revision") == (
        f"{NOW.revision} all options at their defaults"
    )
    assert "<dt>Revision</dt>" not in shown(browser, scenes.job())


def test_the_api_shows_the_revision_and_its_configuration(caller: Caller) -> None:
    job = told(caller.get(f"jobs/{done()}"))
    assert job["revision_id"] == str(THEN.revision)
    assert job["revision"] == {
        "task": ADD,
        "timeout_seconds": 2.5,
        "secrets": ["<b>", "token"],
        "discard_on": ["builtins.OSError"],
    }
    plain = told(caller.get(f"jobs/{scenes.job()}"))
    assert (plain["revision_id"], plain["revision"]) == (None, None)


@pytest.mark.parametrize(
    ("said", "revision"), [({}, THEN), ({"revision": "same"}, THEN), ({"revision": "current"}, NOW)]
)
def test_the_form_of_a_rerun_asks_by_which_configuration(
    browser: Client, said: dict[str, str], revision: TaskConfig
) -> None:
    job_id = done()
    form = browser.get(f"/jobs/{job_id}/reruns/").content.decode()
    assert '<option value="same">as it was when the job was enqueued</option>' in form
    assert post(browser, job_id, "reruns", **said).status_code == 303
    assert rerun_by(job_id) == [revision.revision]


def test_another_configuration_is_refused_in_the_form_and_the_choice_is_kept(browser: Client) -> None:
    job_id = done()
    response = post(browser, job_id, "reruns", revision="newest")
    assert response.status_code == 422
    assert 'aria-describedby="wrong_revision"' in response.content.decode()
    gone = scenes.completed_job(scenes.worker(), revision=THEN)
    response = post(browser, gone, "reruns", revision="current")
    assert response.status_code == 422
    assert "there is no current revision" in response.content.decode()
    assert '<option value="current" selected>' in response.content.decode()
    assert (rerun_by(job_id), rerun_by(gone)) == ([], [])


@pytest.mark.parametrize(
    ("body", "revision"), [(None, THEN), ({"reason": "x"}, THEN), ({"revision": "current"}, NOW)]
)
def test_the_api_reruns_by_the_configuration_asked_for(caller: Caller, body: Any, revision: TaskConfig) -> None:
    job_id = done()
    told(caller.post(f"jobs/{job_id}/rerun", body))
    assert rerun_by(job_id) == [revision.revision]


def test_the_api_knows_two_configurations(caller: Caller) -> None:
    problem(caller.post(f"jobs/{done()}/rerun", {"revision": "newest"}), 422, "invalid")


@pytest.mark.requirement("N7")
def test_who_may_not_enqueue_may_not_rerun_through_any_door(
    closing: Callable[[], None], browser: Client, caller: Caller
) -> None:
    job_id = done()
    closing()
    response = post(browser, job_id, "reruns")
    assert response.status_code == 403
    assert "may not enqueue" in response.content.decode()
    said = problem(caller.post(f"jobs/{job_id}/rerun"), 403, "not_allowed")
    assert "may not enqueue" in said["message"]
    assert rerun_by(job_id) == []
