"""The console as somebody on call uses it."""

import json
import re

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from shiftboss.queue.authority import System
from shiftboss.queue.store import histograms
from shiftboss.queue.store.statement import run
from tests.browser.conftest import Opener, later, log_in
from tests.browser.corners import KEPT
from tests.console import scenes
from tests.store.making import execute

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3"), pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}}
LONG = "a_module_with_a_very_long_name_indeed." * 8 + "task"


def test_somebody_logs_in_finds_a_failed_job_and_logs_out(opened: Opener) -> None:
    job_id = scenes.quarantined_job(scenes.worker())
    page = opened("/", logged_in=False)
    expect(page).to_have_title("Log in · Shiftboss")
    log_in(page)
    expect(page.locator("#strip")).to_contain_text("All well")
    page.locator("td[data-label=Quarantined] a").first.click()
    page.get_by_role("link", name=str(job_id), exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("send_invoice")
    expect(page.locator(".trace")).to_contain_text("mailer.deliver(invoice)")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()


def test_the_overview_refreshes_by_itself_and_its_title_tells(opened: Opener) -> None:
    page = opened("/")
    expect(page).to_have_title("No live worker: nothing runs · Shiftboss")
    scenes.worker("default")
    scenes.job()
    expect(page.locator("tr[data-key=default]")).to_be_visible(timeout=6000)
    expect(page).to_have_title("All well · Shiftboss")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_a_refresh_leaves_open_details_selection_focus_and_scroll_alone(opened: Opener) -> None:
    for number in range(30):
        scenes.job(queue=f"queue-{number:02}")
    worker = scenes.worker()
    scenes.completed_job(worker, queue="queue-01")
    execute("update shiftboss_finished set finished_at = finished_at - interval '2 minutes'")
    run(histograms.write(authority=System()))
    page = opened("/", viewport={"width": 900, "height": 500})
    page.get_by_text("As a table").click()
    link = page.locator("tr[data-key=queue-20] a").first
    link.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('tr[data-key=queue-10] th'))")
    top = "document.querySelector('tr[data-key=queue-20]').getBoundingClientRect().top"
    before = page.evaluate(top)
    assert page.evaluate("scrollY") > 0
    page.evaluate("window.row = document.querySelector('tr[data-key=queue-20]')")
    scenes.job(queue="queue-00a")
    expect(page.locator("#freshness")).to_contain_text("Held while text is selected, as of", timeout=6000)
    page.keyboard.press(".")
    expect(page.locator("tr[data-key=queue-00a]")).to_be_attached(timeout=6000)
    assert page.locator("details[open]").count() == 1
    expect(link).to_be_focused()
    assert page.evaluate("getSelection().toString()") == "queue-10"
    assert page.evaluate("window.row === document.querySelector('tr[data-key=queue-20]')")
    assert abs(page.evaluate(top) - before) < 5


def test_details_that_were_closed_stay_closed(opened: Opener) -> None:
    worker = scenes.worker()
    job_id = scenes.job(max_attempts=9)
    scenes.failed(scenes.claimed(worker), worker, backoff_seconds=3600)
    page = opened(f"/jobs/{job_id}/", hurried=True)
    page.get_by_text("Traceback", exact=True).click()
    assert page.locator("details[open]").count() == 0
    with page.expect_response(lambda response: response.status == 200, timeout=6000):
        later(page)
    assert page.locator("details[open]").count() == 0


def test_a_hidden_tab_asks_nothing_and_an_unchanged_page_is_answered_without_content(opened: Opener) -> None:
    page = opened("/jobs/?state=discarded", hurried=True)
    hide(page, hidden=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    later(page, 60)
    assert asked == []
    with page.expect_response(lambda response: response.status == 204):
        hide(page, hidden=False)
    expect(page.get_by_text("No job is discarded.")).to_be_visible()


def hide(page: Page, *, hidden: bool) -> None:
    """Let the page believe that its tab is hidden; headless Chromium shows every tab."""
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')) }",
        hidden,
    )


def test_a_search_stands_in_the_address_and_each_of_its_terms_can_be_taken_out(opened: Opener) -> None:
    scenes.job(queue="mail")
    scenes.job(queue="reports")
    page = opened("/jobs/?state=available")
    page.get_by_label("Search jobs").fill("queue:mail")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"state=available.*q=queue%3Amail|q=queue%3Amail.*state=available"))
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    page.get_by_role("link", name="Without queue:mail").click()
    expect(page.locator("tbody tr[data-key]")).to_have_count(2)


def test_new_jobs_are_told_while_others_are_selected_and_no_row_moves(opened: Opener) -> None:
    job_id = scenes.job()
    page = opened("/jobs/?state=available", hurried=True)
    page.locator(f'input[name="job"][value="{job_id}"]').check()
    scenes.job()
    later(page, 4)
    expect(page.get_by_role("link", name="+1 new")).to_be_visible(timeout=20_000)
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    page.get_by_role("link", name="+1 new").click()
    expect(page.locator("tbody tr[data-key]")).to_have_count(2)


def test_all_works_without_javascript(opened: Opener) -> None:
    job_id = scenes.quarantined_job(scenes.worker())
    page = opened("/", logged_in=False, java_script_enabled=False)
    log_in(page)
    expect(page.get_by_text(re.compile(r"As of \d\d:\d\d:\d\d UTC"))).to_be_visible()
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name=re.compile("^quarantined")).click()
    page.get_by_label("Search jobs").fill("queue:default error:mailbox")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("link", name=str(job_id), exact=True).click()
    expect(page.locator(".trace")).to_contain_text("mailer.deliver(invoice)")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()


@pytest.mark.requirement("L29")
def test_what_an_attempt_has_kept_fits_every_screen_and_its_output_scrolls_in_itself(opened: Opener) -> None:
    worker = scenes.worker("default")
    job_id = scenes.job(max_attempts=1)
    scenes.failed(scenes.claimed(worker), worker, evidence=json.dumps(KEPT))
    page = opened(f"/jobs/{job_id}/", java_script_enabled=False)
    page.get_by_text("Checkpoint at its end").click()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        written = page.get_by_role("region", name="Last output")
        assert written.evaluate("it => it.scrollHeight > it.clientHeight && it.clientHeight < 400")
        assert written.evaluate("it => it.scrollWidth > it.clientWidth")
    expect(written).to_contain_text("the last line")


def test_the_browser_holds_the_pages_to_their_policy(chromium: Browser, live_server: LiveServer) -> None:
    page = chromium.new_page(base_url=live_server.url)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto("/login/")
    page.evaluate("document.body.setAttribute('style', 'color: rgb(1, 2, 3)')")
    assert page.evaluate("getComputedStyle(document.body).color") != "rgb(1, 2, 3)"
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    assert page.evaluate("window.ran") is None
    assert len(complaints) >= 2
    page.close()
