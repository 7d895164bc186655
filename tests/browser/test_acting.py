"""Somebody on call acts."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate, queues
from shiftboss.queue.store.statement import run
from tests.browser.conftest import Opener, later, log_in
from tests.console import scenes

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3", "C4"), pytest.mark.django_db(transaction=True)]

LATER = 6000
"""Milliseconds within which a page has refreshed itself."""


def asks(page: Page, act: str) -> None:
    """Click an act, and see its form above the page."""
    page.get_by_role("link", name=act, exact=True).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


def does(page: Page, act: str) -> None:
    page.get_by_role("button", name=act, exact=True).click()


def test_a_job_is_cancelled_that_has_begun_meanwhile_and_nothing_typed_is_lost(opened: Opener) -> None:
    job_id = scenes.job()
    page = opened(f"/jobs/{job_id}/")
    asks(page, "Cancel")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("the customer")
    field = page.locator("dialog [name=request_id]")
    before = field.input_value()
    expect(page.locator("#freshness")).to_contain_text("Held while something is open, as of")
    scenes.claimed(scenes.worker())
    # Asked for by the page itself, that is: also an answer that comes late does not touch the form.
    page.evaluate("htmx.trigger('#live', 'refresh')")
    expect(page.locator("header.job .state")).to_have_text("running", timeout=LATER)
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type(" called")
    assert field.input_value() == before
    page.keyboard.press("Enter")
    expect(page.locator(".news")).to_have_text(f"Job {job_id} runs; its end has been requested.")
    assert page.url.endswith(f"/jobs/{job_id}/")
    expect(page.get_by_role("link", name="Cancel", exact=True)).to_have_count(0)
    [entry] = run(audit.entries(authority=scenes.SYSTEM, job_id=job_id))
    assert entry.reason == "the customer called"


def test_a_form_from_before_the_job_moved_on_leads_to_what_can_be_done_now(opened: Opener) -> None:
    job_id = scenes.job_in(State.QUARANTINED)
    page = opened(f"/jobs/{job_id}/", refused=409)
    asks(page, "Reinstate")
    run(operate.discard([job_id], authority=scenes.SYSTEM))
    does(page, "Reinstate")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Job {job_id} has moved on: it is discarded")
    asks(page, "Rerun")
    expect(page.get_by_role("dialog", name=f"Rerun job {job_id}?")).to_be_visible()
    does(page, "Rerun")
    expect(page.get_by_text(f"is the rerun of job {job_id}.")).to_be_visible()


@pytest.mark.requirement("P6")
def test_a_queue_is_paused_and_resumed_and_limited_and_limited_no_more(opened: Opener) -> None:
    scenes.worker("mail")
    scenes.job(queue="mail")
    page = opened("/queues/")
    asks(page, "Pause")
    page.get_by_label("Reason").fill("the provider is down")
    does(page, "Pause")
    expect(page.get_by_text("by operator since")).to_be_visible()
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_text("in queue mail, which is paused by operator (the provider is down)")).to_be_visible()
    page.get_by_role("link", name="paused", exact=True).click()
    asks(page, "Resume")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Queue mail is claimed again.")).to_be_visible()
    assert run(queues.pauses(authority=scenes.SYSTEM)) == []
    asks(page, "Limit")
    page.get_by_label("Jobs at once").fill("3")
    page.get_by_label("Reason").fill("the provider takes no more")
    does(page, "Limit")
    expect(page.get_by_text("Queue mail from now on: 3 at once.")).to_be_visible()
    expect(page.get_by_text("0 of 3 slots taken")).to_be_visible()
    asks(page, "Limit")
    expect(page.get_by_text("Now: 3 at once, set by operator.")).to_be_visible()
    expect(page.get_by_label("Jobs at once")).to_be_empty()
    page.locator("dialog [name=limit]").select_option("none")
    page.get_by_label("Reason").fill("it takes more again")
    does(page, "Limit")
    expect(page.get_by_text("No limit whatever the settings say")).to_be_visible()
    [one] = run(queues.limits(authority=scenes.SYSTEM))
    assert (one.limit.concurrency, one.by) == (None, "operator")


def test_jobs_are_discarded_from_their_list_without_javascript(opened: Opener) -> None:
    kept, *two, given_up = [scenes.job_in(State.QUARANTINED) for _ in range(4)]
    page = opened("/jobs/?state=quarantined", java_script_enabled=False)
    page.get_by_role("link", name="Discard", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Discard job {given_up}?")
    page.get_by_label("Reason").fill("twice the same")
    does(page, "Discard")
    expect(page.get_by_text(f"Job {given_up} was discarded.")).to_be_visible()
    assert page.url.endswith("/jobs/?state=quarantined")
    for job_id in two:
        page.get_by_label(f"Select job {job_id}").check()
    page.locator("#selection").get_by_role("button", name="Discard").click()
    page.get_by_label("Reason").fill("all of them")
    does(page, "Discard")
    expect(page.locator(".news")).to_contain_text("2 jobs were discarded.")
    expect(page.locator(".jobs tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name=str(kept), exact=True)).to_be_visible()


def test_a_form_opened_before_another_login_is_shown_again_and_can_be_sent(opened: Opener) -> None:
    job_id = scenes.job()
    page = opened("/login/", logged_in=False, refused=403)
    log_in(page)
    page.goto(f"/jobs/{job_id}/")
    asks(page, "Cancel")
    page.get_by_label("Reason").fill("wrong customer")
    other = page.context.new_page()
    other.goto("/login/")
    log_in(other)
    does(page, "Cancel")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done: this form is older than your login.")
    expect(page.get_by_label("Reason")).to_have_value("wrong customer")
    does(page, "Cancel")
    expect(page.get_by_text(f"Job {job_id} was cancelled.")).to_be_visible()


def test_an_act_after_the_session_has_ended_leads_to_the_login_and_back_to_the_form(opened: Opener) -> None:
    job_id = scenes.job()
    page = opened(f"/jobs/{job_id}/")
    page.get_by_text("More").click()
    page.context.clear_cookies()
    page.locator("#live").get_by_role("link", name="Quarantine", exact=True).click()
    expect(page.get_by_label("Password")).to_be_visible()
    log_in(page)
    page.wait_for_url(re.compile(rf"/jobs/{job_id}/(quarantines/)?$"))


def test_a_page_that_is_no_longer_permitted_says_so_by_itself(opened: Opener, operator: User) -> None:
    page = opened("/queues/", refused=403, hurried=True)
    operator.user_permissions.clear()
    later(page)
    expect(page.get_by_text("It needs the permission shiftboss.view_job.")).to_be_visible(timeout=LATER)


def test_a_link_to_a_form_can_still_be_opened_beside_the_page_and_back_leaves_the_form(opened: Opener) -> None:
    job_id = scenes.job()
    page = opened(f"/jobs/{job_id}/")
    with page.context.expect_page() as beside:
        page.get_by_role("link", name="Cancel", exact=True).click(modifiers=["Control"])
    expect(beside.value.get_by_role("heading", level=1)).to_have_text(f"Cancel job {job_id}?")
    expect(page.get_by_role("dialog")).to_be_hidden()
    asks(page, "Cancel")
    page.get_by_role("link", name="Back", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("link", name="Cancel", exact=True)).to_be_focused()
    assert page.url.endswith(f"/jobs/{job_id}/")
    assert scenes.state_of(job_id) is State.AVAILABLE
