"""Workers and queues in a browser: an order by keyboard, and all that waits in a queue cancelled."""

import re

import pytest
from playwright.sync_api import expect

from shiftboss.acts import many
from shiftboss.console.views import sweeping
from tests.browser.conftest import Opener
from tests.console import scenes
from tests.store.making import rows

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3", "C4"), pytest.mark.django_db(transaction=True)]


@pytest.mark.requirement("L26")
def test_a_worker_is_found_and_drained_by_keyboard(opened: Opener) -> None:
    worker = scenes.worker("mail", pool="heavy")
    scenes.worker(pid=2)
    scenes.heartbeat(worker, in_use=1, memory_kb=2048, cpu_ms=10)
    page = opened("/workers/")
    page.get_by_label("Pool").select_option("heavy")  # the page is asked for at once
    page.wait_for_url(re.compile("pool=heavy"))
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    page.get_by_role("link", name=f"#{worker}").click()
    drain = page.get_by_role("link", name="Drain worker")
    drain.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("No other live worker serves this queue: mail")
    page.keyboard.type("its host reboots")
    page.keyboard.press("Enter")
    expect(page.locator(".news")).to_contain_text(f"Worker {worker} is told to drain")
    expect(page.locator("header.job .state")).to_have_text("draining")
    assert rows("select ordered from shiftboss_worker where id = %s", worker) == [("drain",)]


def test_all_that_waits_in_a_queue_is_cancelled_in_batches_that_go_on_by_themselves(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(many, "BULK_BATCH", 2)
    for _ in range(5):
        scenes.job(queue="a/b c")
    page = opened("/queues/")
    page.get_by_role("link", name="a/b c").click()
    page.get_by_role("link", name="Cancel all 5 that wait").click()
    expect(page.get_by_role("dialog")).to_contain_text("Cancel all 5 jobs that wait in queue a/b c?")
    page.get_by_label("Reason").fill("wrong recipients")
    page.get_by_role("button", name="Cancel 5 jobs").click()
    expect(page.locator(".news")).to_contain_text("5 jobs")
    assert page.url.endswith("/queues/")
    assert rows("select count(*) from shiftboss_job") == [(0,)]
