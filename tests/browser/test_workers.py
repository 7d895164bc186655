"""All that waits in a queue cancelled, in a browser."""

import pytest
from playwright.sync_api import expect

from shiftboss.acts import many
from shiftboss.console.views import sweeping
from tests.browser.conftest import Opener
from tests.console import scenes
from tests.store.making import rows

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3", "C4"), pytest.mark.django_db(transaction=True)]


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
