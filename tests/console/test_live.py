"""Pages keep themselves fresh, and are kept by nobody else."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from tests.console import scenes
from tests.store.making import execute
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("C3")


def version(response: Any) -> str:
    found = re.search(r"hx-headers='([^']*)'", response.content.decode())
    assert found
    return str(json.loads(html.unescape(found[1]))["Shiftboss-Version"])


def refresh(browser: Client, address: str, known: str = "") -> Any:
    return browser.get(address, headers={"HX-Request": "true", "Shiftboss-Version": known})


def test_a_refresh_is_answered_with_the_live_part_alone(browser: Client) -> None:
    scenes.job()
    part = refresh(browser, "/jobs/?state=available").content.decode()
    assert part.startswith('<div id="live" hx-get="/jobs/?state=available"')
    assert "<html" not in part
    assert "csrf" not in part


FIGURES = ["/", "/jobs/", "/queues/", "/queues/one/?queue=mail", "/workers/", "/workers/{worker}/", "/quarantine/"]


@pytest.mark.parametrize("address", [*FIGURES, "/jobs/?state=available", "/jobs/{job}/", "/audit/", "/backfills/"])
def test_a_refresh_has_no_content_while_nothing_but_the_clock_has_changed(browser: Client, address: str) -> None:
    worker = scenes.worker("mail")
    scenes.quarantined_job(scenes.worker("default"))
    scenes.job(queue="mail")
    scenes.claimed(worker, queue="mail")
    job_id = scenes.job(queue="mail")
    address = address.format(job=job_id, worker=worker)

    def unchanged() -> bool:
        answer = refresh(browser, address, version(browser.get(address)))
        assert answer.status_code == (200 if answer.content else 204)
        return bool(answer.status_code == 204)

    # A time may fall to the one second or the next by how long the answers took: then once more.
    wait_for(unchanged, seconds=20)


@pytest.mark.requirement("B7")
def test_a_page_says_when_counts_were_made_once_that_is_long_ago_and_is_the_same_until_the_next(
    browser: Client,
) -> None:
    scenes.job(queue="mail")
    assert "The counts are a few seconds old" in browser.get("/queues/").content.decode()
    with scenes.maintained():
        execute("update shiftboss_sample set at = at - interval '1 minute' where part = 'counts'")
        page = browser.get("/queues/")
        assert re.search(r"Counted at <time [^>]*>\d\d:\d\d:\d\d UTC</time>", page.content.decode())
        wait_for(
            lambda: refresh(browser, "/queues/", version(browser.get("/queues/"))).status_code == 204,
            seconds=20,
        )


def test_a_refresh_of_a_changed_page_has_the_new_part_and_its_version(browser: Client) -> None:
    old = version(browser.get("/jobs/?state=available"))
    job_id = scenes.job()
    answer = refresh(browser, "/jobs/?state=available", old)
    assert answer.status_code == 200
    assert f'data-key="{job_id}"' in answer.content.decode()
    assert version(answer) != old


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/jobs/",
        "/jobs/?state=no",
        "/jobs/{job}/",
        "/jobs/999999/",
        "/queues/",
        "/audit/",
        "/jobs/{job}/cancellations/",
        "/jobs/{job}/discards/",
    ],
)
def test_no_page_with_job_data_is_stored_anywhere(browser: Client, address: str) -> None:
    address = address.format(job=scenes.job())
    assert browser.get(address).headers["Cache-Control"] == "no-store"


def test_the_page_and_its_part_are_never_mistaken_for_each_other(browser: Client) -> None:
    varies = browser.get("/").headers["Vary"]
    assert "HX-Request" in varies
    assert "Shiftboss-Version" in varies
