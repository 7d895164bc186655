"""Two attempts of one job side by side."""

import re

import pytest
from django.test import Client

from shiftboss.permissions import VIEW
from shiftboss.queue.store import operate
from shiftboss.queue.store.statement import run
from tests.console import scenes

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3")]


def failed_twice() -> int:
    worker = scenes.worker()
    job_id = scenes.job()
    scenes.failed(scenes.claimed(worker), worker, message="first", traceback="a\nb\nc")
    run(operate.expedite([job_id], authority=scenes.SYSTEM, by="kim"))
    scenes.failed(scenes.claimed(worker), worker, message="second", traceback="a\nx\nc")
    return job_id


def test_two_attempts_stand_side_by_side_and_what_differs_is_marked(browser: Client) -> None:
    job_id = failed_twice()
    assert 'href="?compare=1,2"' in browser.get(f"/jobs/{job_id}/").content.decode()
    page = browser.get(f"/jobs/{job_id}/?compare=2,1").content.decode()
    assert "Fence 1 beside fence 2" in page
    rows = re.findall(r"<tr([^>]*)><th scope=\"row\">(\w[\w ]*)", page)
    marked = {name.strip(): "differs" in attributes for attributes, name in rows}
    assert marked["Message"]
    assert not marked["Error"]
    lines = re.findall(r'<pre class="(old|new|same)">. (\w)</pre>', page)
    assert lines == [("same", "a"), ("old", "b"), ("new", "x"), ("same", "c")]


def test_tracebacks_are_not_compared_for_who_may_not_see_them() -> None:
    job_id = failed_twice()
    client = Client()
    client.force_login(scenes.person("vera", VIEW))
    page = client.get(f"/jobs/{job_id}/?compare=1,2").content.decode()
    assert "Fence 1 beside fence 2" in page
    assert "Tracebacks" not in page


@pytest.mark.parametrize("asked", ["1", "1,1", "1,9", "a,b", "1,2,3", "\x00,\ud800", "9" * 9000])
def test_what_cannot_be_compared_is_refused(browser: Client, asked: str) -> None:
    answer = browser.get(f"/jobs/{failed_twice()}/", {"compare": asked.encode(errors="replace").decode()})
    assert answer.status_code == 400
