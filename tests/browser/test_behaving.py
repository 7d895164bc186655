"""How pages behave: their pace, what holds them, the keyboard, times and charts."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from shiftboss.queue.states import State
from shiftboss.queue.store import histograms, operate
from shiftboss.queue.store.statement import run
from tests.browser.conftest import Opener, later, log_in
from tests.console import scenes
from tests.store.making import execute
from tests.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3"), pytest.mark.django_db(transaction=True)]

LATER = 20_000
LIST = "/jobs/?state=quarantined"


def freshness(page: Page) -> Any:
    return page.locator("#freshness")


def focused(page: Page) -> str:
    """The text of what has the focus."""
    return str(page.evaluate("document.activeElement.textContent.trim()"))


def test_the_keyboard_finds_selects_and_opens_and_lists_its_keys(opened: Opener) -> None:
    ids = [scenes.job_in(State.QUARANTINED) for _ in range(4)][::-1]
    page = opened("/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs/")
    page.goto(LIST)
    page.keyboard.press("/")
    expect(page.get_by_label("Search jobs")).to_be_focused()
    page.keyboard.type("jx")
    expect(page.get_by_label("Search jobs")).to_have_value("jx")
    page.get_by_label("Search jobs").fill("")
    page.get_by_label("Search jobs").blur()

    for key, there in (("j", 0), ("j", 1), ("k", 0), ("k", 0), ("j", 1)):
        page.keyboard.press(key)
        assert focused(page) == str(ids[there])
    page.keyboard.press("x")
    expect(page.locator("#said")).to_have_text("1 selected")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Shift+X")
    assert (
        page.eval_on_selector_all("[form=selection]:checked", "all => all.map(one => Number(one.value))")
        == ids[1:]
    )
    expect(page.locator("#said")).to_have_text("3 selected")
    expect(freshness(page)).to_contain_text("Held while jobs are selected, as of", timeout=LATER)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{ids[3]}/")

    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    assert page.url.endswith(f"/jobs/{ids[3]}/")
    page.get_by_text("More", exact=True).click()
    expect(page.get_by_role("link", name="Edit", exact=False).first).to_be_attached()
    page.keyboard.press("Escape")
    expect(page.locator(".offers details")).not_to_have_attribute("open", "")

    page.keyboard.press("?")
    page.get_by_label("Single letters act").uncheck()
    page.get_by_role("button", name="Close").click()
    page.goto(LIST)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.body")


def test_a_refresh_is_held_while_jobs_are_selected_and_goes_on_after(opened: Opener) -> None:
    first = scenes.job_in(State.QUARANTINED)
    page = opened(LIST, hurried=True)
    box = page.locator(f"tr[data-key='{first}'] input")
    box.check()
    expect(freshness(page)).to_have_text(re.compile(r"Held while jobs are selected, as of \d\d:\d\d:\d\d UTC"))
    second = scenes.job_in(State.QUARANTINED)
    page.keyboard.press(".")  # who asks for it gets it, and what is selected stays selected
    expect(page.locator(f"tr[data-key='{second}']")).to_be_visible(timeout=LATER)
    expect(box).to_be_checked()
    box.uncheck()
    later(page)
    expect(freshness(page)).to_have_text("Live", timeout=LATER)


def test_the_pace_is_chosen_and_remembered(opened: Opener) -> None:
    page = opened("/jobs/?state=discarded", hurried=True)
    expect(page.get_by_label("Refresh")).to_have_value("2")
    page.get_by_label("Refresh").select_option("off")
    page.goto("/queues/")
    expect(page.get_by_label("Refresh")).to_have_value("0")
    expect(freshness(page)).to_have_text(re.compile(r"As of \d\d:\d\d:\d\d UTC"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    later(page, 60)
    assert asked == []
    with page.expect_response("**/queues/", timeout=LATER):
        page.get_by_label("Refresh").select_option("every 2 s")
    expect(freshness(page)).to_have_text("Live", timeout=LATER)


def test_what_is_shown_is_marked_as_old_with_the_time_of_the_last_answer(opened: Opener) -> None:
    page = opened("/jobs/?state=discarded", refused=503, hurried=True)
    later(page)
    expect(freshness(page)).to_have_text("Live", timeout=LATER)
    page.context.route("**/jobs/**", lambda route: route.fulfill(status=503, body="no"))
    later(page)
    old = re.compile(r"No answer since \d\d:\d\d:\d\d UTC: what you see is old")
    expect(freshness(page)).to_have_text(old, timeout=LATER)
    page.context.unroute("**/jobs/**")
    later(page)
    expect(freshness(page)).to_have_text("Live", timeout=LATER)


def test_focus_goes_to_the_next_row_where_its_own_has_gone(opened: Opener) -> None:
    newest, middle, oldest = [scenes.job_in(State.QUARANTINED) for _ in range(3)][::-1]
    page = opened(LIST, hurried=True)
    page.get_by_role("link", name=str(middle), exact=True).focus()
    run(operate.discard([middle], authority=scenes.SYSTEM))
    later(page)
    expect(page.get_by_role("link", name=str(oldest), exact=True)).to_be_focused(timeout=LATER)
    run(operate.discard([oldest, newest], authority=scenes.SYSTEM))
    later(page)
    expect(page.locator("#content")).to_be_focused(timeout=LATER)


def test_a_session_that_ends_leads_through_the_login_to_the_same_place(opened: Opener) -> None:
    page = opened("/jobs/?state=discarded", hurried=True)
    page.context.clear_cookies()
    later(page)
    expect(page.get_by_label("Password")).to_be_visible(timeout=LATER)
    log_in(page)
    expect(page.get_by_text("No job is discarded.")).to_be_visible()
    assert page.url.endswith("/jobs/?state=discarded")


def test_times_are_in_the_readers_own_zone_with_utc_behind_them(opened: Opener) -> None:
    job_id = scenes.job()
    page = opened(f"/jobs/{job_id}/", timezone_id="Asia/Kolkata", hurried=True)
    written = page.locator("dl.facts time[data-form=exact]").first
    own = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} GMT\+5:30$")
    expect(written).to_have_text(own)
    utc = str(written.get_attribute("title"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", utc)
    stamp = page.evaluate(
        "text => Date.parse(text.slice(0, 23).replace(' ', 'T') + '+05:30')", written.text_content()
    )
    assert stamp == page.evaluate("text => Date.parse(text.slice(0, 23).replace(' ', 'T') + 'Z')", utc)
    told = page.locator("dl.facts time:not([data-form])").first
    assert str(told.get_attribute("title")).splitlines() == [written.text_content(), utc]
    scenes.claimed(scenes.worker())
    later(page)
    expect(page.locator("header.job .state")).to_have_text("running", timeout=LATER)
    expect(written).to_have_text(own)


def test_ages_go_on_while_nothing_is_asked_for(opened: Opener) -> None:
    scenes.worker(lease_seconds=3600.0)
    page = opened("/audit/", hurried=True)
    page.get_by_label("Refresh").select_option("off")
    times = "heartbeat_at = now() - interval '20 s', started_at = now() - interval '59 min 58 s'"
    execute(f"update shiftboss_worker set {times}")
    page.goto("/workers/")
    age, meter = page.locator("td.gauge time[data-ages=lasts]").first, page.locator("meter[data-since]").first
    told, level = str(age.text_content()), float(str(meter.evaluate("meter => meter.value")))
    later(page)
    expect(age).not_to_have_text(told, timeout=LATER)
    expect(age).to_have_text(re.compile(r"^(\d+\smin\s)?\d+\ss$"))
    assert float(str(meter.evaluate("meter => meter.value"))) > level
    expect(freshness(page)).to_contain_text("As of")
    hour = page.locator("time[data-ages=ago]", has_text="1\N{NO-BREAK SPACE}h ago").first
    expect(hour).to_be_visible(timeout=LATER)


def test_charts_are_drawn_survive_a_refresh_and_follow_light_and_dark(opened: Opener) -> None:
    worker = scenes.worker("default")

    def an_hour_of(jobs: int) -> None:
        for _ in range(jobs):
            scenes.completed_job(worker)
        execute("update shiftboss_finished set finished_at = finished_at - interval '2 minutes'")
        run(histograms.write(authority=scenes.SYSTEM))

    an_hour_of(2)
    page = opened("/?span=15m")
    chart = page.locator("figure[data-chart]").first
    expect(chart.locator("canvas")).to_be_visible()
    painted = """figure => {
      const drawn = figure.querySelector("canvas");
      const blank = Object.assign(document.createElement("canvas"), {width: drawn.width, height: drawn.height});
      return drawn.toDataURL() !== blank.toDataURL();
    }"""
    assert chart.evaluate(painted)
    chart.evaluate("figure => { figure.kept = true; figure.firstChild.kept = true }")
    scenes.job(queue="another")
    page.keyboard.press(".")
    expect(page.locator("tr[data-key=another]")).to_be_visible(timeout=LATER)
    assert chart.evaluate("figure => figure.kept && figure.isConnected")
    assert chart.evaluate(painted)
    page.emulate_media(color_scheme="dark")
    wait_for(lambda: not chart.evaluate("figure => figure.firstChild.kept"), seconds=20)
    assert chart.evaluate(painted)
    # Whatever the browser complains of, of a style for example, fails the test at its end (`opened`).
