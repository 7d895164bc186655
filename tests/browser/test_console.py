"""The console as somebody on call uses it."""

import json
import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from shiftboss import acts
from shiftboss.permissions import Person, Via
from shiftboss.queue.authority import System
from shiftboss.queue.contract import Note, NoteKind
from shiftboss.queue.store import backfill, histograms
from shiftboss.queue.store import notes as store_notes
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.store.statement import run
from tests.browser.conftest import Opener
from tests.console import scenes
from tests.store.making import execute

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3"), pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}}
LONG = "a_module_with_a_very_long_name_indeed." * 8 + "task"


def scene() -> int:
    """Something in every corner; the id of a job with attempts and a traceback."""
    worker = scenes.worker("default", "a-queue-whose-name-is-long-and-has-no-spaces-at-all-" + "x" * 40)
    scenes.heartbeat(worker, in_use=3)
    scenes.completed_job(worker)
    operator = Person.of_user(User.objects.get(username="operator"), via=Via.CONSOLE)
    acts.pause("a-queue-whose-name-is-long-and-has-no-spaces-at-all-" + "x" * 40, by=operator, reason="z" * 900)
    scenes.job(LONG, args='{"args": ["' + "y" * 4000 + '"], "kwargs": {}}')
    scenes.job(queue="a-queue-whose-name-is-long-and-has-no-spaces-at-all-" + "x" * 40)
    return scenes.quarantined_job(worker)


def addresses(job_id: int) -> list[str]:
    lists = [f"/jobs/?state={state}" for state in ("available", "quarantined", "completed", "discarded")]
    wide = f"/jobs/?state=any&q=-task:{'x' * 300}&columns=queue,owner,key,tags,failures,enqueued,due,meta.a"
    return [
        "/",
        *lists,
        wide,
        "/jobs/?q=quue:mail+state:runing",
        "/queues/",
        "/audit/",
        f"/jobs/{job_id}/",
        f"/jobs/{job_id - 1}/",
        f"/jobs/{job_id - 2}/",
    ]


def test_somebody_logs_in_finds_a_failed_job_and_logs_out(opened: Opener) -> None:
    job_id = scene()
    page = opened("/", logged_in=False)
    expect(page).to_have_title("Log in · Shiftboss")
    page.get_by_label("Name").fill("operator")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
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
    page = opened(f"/jobs/{job_id}/")
    page.get_by_text("Traceback", exact=True).click()
    assert page.locator("details[open]").count() == 0
    with page.expect_response(lambda response: response.status == 200, timeout=6000):
        pass
    assert page.locator("details[open]").count() == 0


def test_an_unchanged_page_is_answered_without_content(opened: Opener) -> None:
    page = opened("/jobs/?state=discarded")
    with page.expect_response(lambda response: response.status == 204, timeout=6000):
        pass
    expect(page.get_by_text("No job is discarded.")).to_be_visible()


def test_a_hidden_tab_asks_nothing(opened: Opener) -> None:
    page = opened("/jobs/?state=discarded")
    hide(page, hidden=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3000)
    assert asked == []
    with page.expect_response(lambda response: response.status == 204, timeout=1500):
        hide(page, hidden=False)


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
    page = opened("/jobs/?state=available")
    page.locator(f'input[name="job"][value="{job_id}"]').check()
    scenes.job()
    expect(page.get_by_role("link", name="+1 new")).to_be_visible(timeout=20_000)
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    page.get_by_role("link", name="+1 new").click()
    expect(page.locator("tbody tr[data-key]")).to_have_count(2)


def test_all_works_without_javascript(opened: Opener) -> None:
    job_id = scene()
    page = opened("/", logged_in=False, java_script_enabled=False)
    page.get_by_label("Name").fill("operator")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text(re.compile(r"As of \d\d:\d\d:\d\d UTC"))).to_be_visible()
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name=re.compile("^quarantined")).click()
    page.get_by_label("Search jobs").fill("queue:default error:mailbox")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("link", name=str(job_id), exact=True).click()
    expect(page.locator(".trace")).to_contain_text("mailer.deliver(invoice)")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_a_phone_never_scrolls_sideways(opened: Opener, direction: str) -> None:
    job_id = scene()
    page = opened("/", **PHONE)
    for address in addresses(job_id):
        page.goto(address)
        page.evaluate("direction => { document.documentElement.dir = direction }", direction)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
        tallest = page.evaluate(
            "Math.max(0, ...[...document.querySelectorAll('tbody tr')].map(row => row.clientHeight))"
        )
        assert tallest < 700, address


def test_backfills_limits_and_what_a_handler_told_fit_every_screen(opened: Opener) -> None:
    worker = scenes.worker("default")
    scenes.heartbeat(worker, tainted=12, dropped=123_456)
    queue = "a-queue-whose-name-is-long-and-has-no-spaces-at-all-" + "x" * 40
    operator = Person.of_user(User.objects.get(username="operator"), via=Via.CONSOLE)
    acts.limit(queue, by=operator, limit=10_000, reason="z" * 900)
    waiting = scenes.job(queue=queue)
    number = run(backfill.begin(a_backfill(queue), authority=scenes.SYSTEM))
    run(backfill.add(number, [(f"{n:03}", "{}") for n in range(3)], authority=scenes.SYSTEM))
    told = scenes.job()
    [held] = scenes.claimed(worker)
    notes = [
        Note(NoteKind.EVENT, '{"rows": "' + "y" * 2000 + '"}', "e" * 90),
        Note(NoteKind.PROGRESS, '"' + "p" * 900 + '"'),
    ]
    run(store_notes.note([(held.lease, note) for note in notes], authority=scenes.SYSTEM, worker_id=worker))
    page = opened("/", **PHONE)
    forms = ["pauses", "retries", "cancellations"]
    for address in (
        *("/", "/queues/", f"/queues/limits/?queue={queue}", f"/jobs/{waiting}/", f"/jobs/{told}/", "/backfills/"),
        *(f"/backfills/{number}/", *(f"/backfills/{number}/{form}/" for form in forms)),
    ):
        page.goto(address)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)


@pytest.mark.requirement("L29")
@pytest.mark.parametrize("java_script_enabled", [True, False])
def test_what_an_attempt_has_kept_fits_every_screen_and_its_output_scrolls_in_itself(
    opened: Opener, java_script_enabled: bool
) -> None:
    worker = scenes.worker("default")
    job_id = scenes.job(max_attempts=1)
    kept = {
        "host": "h" * 250,
        "args_sha256": "0" * 64,
        "checkpoint": {"after": "c" * 1000},
        "from_elsewhere": "e" * 1000,
        "output": "o" * 1000 + "\nanother line" * 200 + "\nthe last line",
    }
    scenes.failed(scenes.claimed(worker), worker, evidence=json.dumps(kept))
    page = opened(f"/jobs/{job_id}/", **PHONE, java_script_enabled=java_script_enabled)
    page.get_by_text("Checkpoint at its end").click()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        written = page.get_by_role("region", name="Last output")
        assert written.evaluate("it => it.scrollHeight > it.clientHeight && it.clientHeight < 400")
        assert written.evaluate("it => it.scrollWidth > it.clientWidth")
    expect(written).to_contain_text("the last line")


def a_backfill(queue: str) -> NewBackfill:
    """One whose name and task are long."""
    return NewBackfill(
        name="b" * 90, task=LONG, queue=queue, priority=0, concurrency=10_000, failure_limit=1, loss_limit=3
    )


def test_no_page_breaks_its_own_policy_also_after_it_was_refreshed(opened: Opener) -> None:
    job_id = scene()
    page = opened("/")
    for address in addresses(job_id):
        page.goto(address)
        with page.expect_response(lambda response: response.request.headers.get("hx-request") == "true"):
            hide(page, hidden=False)
        assert page.locator("#live [style]").count() == 0
        assert page.locator("script:not([src])").count() == 0
    # Whatever the browser complains of fails the test at its end (`opened`).


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


def test_the_keyboard_alone_reaches_a_job_and_sees_where_it_is(opened: Opener) -> None:
    scene()
    page = opened("/jobs/?state=quarantined")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('tbody') !== null"):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*/")
