"""Somebody on call acts on many jobs at once."""

import pytest
from playwright.sync_api import expect

from shiftboss.acts import many
from shiftboss.console.views import sweeping
from shiftboss.queue.states import State
from tests.browser.conftest import Opener
from tests.console import scenes

pytestmark = [
    pytest.mark.browser,
    pytest.mark.requirement("C3", "C4", "B6"),
    pytest.mark.django_db(transaction=True),
]


def held(n: int) -> list[int]:
    """Jobs that failed as often as they may."""
    worker = scenes.worker()
    ids = [scenes.job(max_attempts=1) for _ in range(n)]
    scenes.failed(scenes.claimed(worker, limit=n), worker)
    return ids


def test_a_range_is_selected_reinstated_and_the_mistake_undone(opened: Opener) -> None:
    jobs = held(5)
    page = opened("/jobs/?state=quarantined")
    boxes = page.locator("#live input[name=job]")
    boxes.nth(0).check()
    boxes.nth(3).click(modifiers=["Shift"])
    expect(page.locator("#selection")).to_contain_text("4 selected:")
    page.get_by_label("all on this page").check()
    expect(page.locator("#selection")).to_contain_text("5 selected:")
    boxes.nth(4).uncheck()
    expect(page.get_by_label("all on this page")).not_to_be_checked()
    page.locator("#selection").get_by_role("button", name="Reinstate").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reinstate 4 jobs?")
    page.get_by_role("button", name="Reinstate", exact=True).click()
    expect(page.locator(".news")).to_contain_text("4 jobs were reinstated.")
    assert sorted(scenes.state_of(job_id) for job_id in jobs) == [State.AVAILABLE] * 4 + [State.QUARANTINED]
    page.locator(".news").get_by_role("link", name="Undo").click()
    expect(page.get_by_role("dialog")).to_contain_text("Those that no worker has claimed since")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".news")).to_contain_text("4 jobs are held back.")
    assert {scenes.state_of(job_id) for job_id in jobs} == {State.QUARANTINED}


def test_a_whole_reason_is_discarded_from_the_quarantine_and_goes_on_by_itself_to_the_end(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "BULK_BATCH", 2)
    monkeypatch.setattr(sweeping, "STEP_SECONDS", 0.0)
    jobs = held(3)
    page = opened("/quarantine/")
    page.get_by_role("link", name="Discard all").click()
    expect(page.get_by_role("dialog")).to_contain_text("Discard 3 jobs?")
    page.keyboard.type("customer is gone")
    page.keyboard.press("Enter")
    expect(page.locator(".news")).to_have_text("3 jobs were discarded.")
    expect(page.locator("#live")).to_contain_text("No job is quarantined.")
    assert {scenes.state_of(job_id) for job_id in jobs} == {State.DISCARDED}
