"""Whole ways through the console: by keyboard alone, without JavaScript on a phone, and as a viewer."""

import re

import pytest
from playwright.sync_api import expect

from shiftboss.queue.states import State
from tests.browser.conftest import Opener
from tests.console import scenes

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3", "C4"), pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}}


def test_the_keyboard_alone_reinstates_one_job_and_discards_two(opened: Opener) -> None:
    ids = [scenes.job_in(State.QUARANTINED) for _ in range(3)][::-1]
    page = opened("/jobs/?state=quarantined")
    press = page.keyboard.press
    press("j")
    press("Enter")
    page.wait_for_url(f"**/jobs/{ids[0]}/")
    for _ in range(30):
        press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Reinstate":
            break
    press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("mended")
    press("Enter")
    expect(page.locator(".news")).to_contain_text(f"Job {ids[0]}")
    assert scenes.state_of(ids[0]) is State.AVAILABLE

    page.goto("/jobs/?state=quarantined")
    for key in ("j", "x", "j", "x"):
        press(key)
    for _ in range(30):
        press("Shift+Tab")
        if page.evaluate("document.activeElement.matches('#selection button[formaction*=discards]')"):
            break
    press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("2 jobs"))
    page.get_by_label("Reason").focus()
    page.keyboard.type("twice the same")
    press("Enter")
    page.wait_for_url("**/jobs/?state=quarantined*")
    assert {scenes.state_of(job_id) for job_id in ids[1:]} == {State.DISCARDED}


def test_without_javascript_a_phone_discards_chosen_jobs(opened: Opener) -> None:
    ids = [scenes.job_in(State.QUARANTINED) for _ in range(3)]
    page = opened("/jobs/?state=quarantined", java_script_enabled=False, **PHONE)
    for job_id in ids[:2]:
        page.get_by_label(f"Select job {job_id}").check()
    page.locator("#selection").get_by_role("button", name="Discard").click()
    page.get_by_label("Reason").fill("twice the same")
    page.get_by_role("button", name="Discard", exact=True).click()
    expect(page.locator(".news")).to_contain_text("2")
    assert [scenes.state_of(job_id) for job_id in ids] == [State.DISCARDED, State.DISCARDED, State.QUARANTINED]
    expect(page.locator(".jobs tbody tr")).to_have_count(1)


def test_a_viewer_sees_all_and_is_offered_nothing(opened: Opener) -> None:
    job_id = scenes.quarantined_job(scenes.worker())
    scenes.person("vera", role="viewer")
    page = opened("/login/", logged_in=False, refused=403)
    page.get_by_label("Name").fill("vera")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    for address in ("/", "/jobs/?state=quarantined", f"/jobs/{job_id}/", "/quarantine/", "/queues/", "/workers/"):
        page.goto(address)
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        assert page.locator("main form[method=post], main a[data-dialog], #selection").count() == 0, address
    page.goto(f"/jobs/{job_id}/discards/")
    expect(page.get_by_text("It needs the permission shiftboss.discard_job.")).to_be_visible()
    page.goto("/audit/")
    expect(page.get_by_text("It needs the permission shiftboss.view_audit.")).to_be_visible()
