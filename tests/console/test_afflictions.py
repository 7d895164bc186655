"""What else a worker says of itself: what its jobs are lent, executors to be ended, observations dropped."""

import json
import re
from html import unescape

import pytest
from django.test import Client

from tests.console import scenes

pytestmark = pytest.mark.requirement("C3")

SAID = r'<span class="small resource[^"]*">(.*?)</span>'


def said(browser: Client, worker: int) -> list[str]:
    """The sentences on a worker's page."""
    response = browser.get(f"/workers/{worker}/")
    assert response.status_code == 200
    found = re.findall(SAID, response.content.decode(), re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]*>", "", one)).split()) for one in found]


@pytest.mark.requirement("R1")
def test_a_worker_shows_what_its_jobs_are_lent(browser: Client) -> None:
    worker = scenes.worker("default")
    resources = {
        "<browser>": {"made": 1200, "lent": 1100, "waiting": 3},
        "session": {"made": 2, "lent": 0, "waiting": 0},
    }
    scenes.heartbeat(worker, resources=json.dumps(resources))
    assert said(browser, worker) == ["<browser>: 1,100 of 1,200 lent, 3 waiting", "session: 0 of 2 lent"]
    scenes.heartbeat(worker, state="stopped", resources=json.dumps(resources))
    assert said(browser, worker) == []


@pytest.mark.requirement("N13", "R3")
def test_a_worker_says_how_many_executors_are_to_end_and_what_no_observer_got(browser: Client) -> None:
    worker = scenes.worker("default")
    scenes.heartbeat(worker)
    assert said(browser, worker) == []
    scenes.heartbeat(worker, tainted=1, dropped=1200)
    assert said(browser, worker) == [
        "1 executor is to be ended: a handler did not end when it was asked to",
        "1,200 observations reached no observer",
    ]
    scenes.heartbeat(worker, tainted=2)
    assert said(browser, worker) == [
        "2 executors are to be ended: handlers did not end when they were asked to",
    ]
    scenes.heartbeat(worker, state="stopped", tainted=2)
    assert said(browser, worker) == []
