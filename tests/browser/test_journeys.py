"""Whole ways through the console, each by all of its pages or acts: by keyboard alone, without JavaScript on a
phone in the dark, as a viewer, and as somebody who has not logged in.

`test_accessible` opens and leaves every form above a page by keyboard.
"""

import re

import pytest
from django.contrib.auth.models import Permission, User
from playwright.sync_api import Page, expect

from shiftboss.queue.states import State
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run
from tests.acts import test_rights
from tests.browser.conftest import WATCH, Opener, log_in, stepped_to
from tests.browser.corners import ASKED, CHOSEN, PAGES, corners
from tests.console import scenes, test_matrix
from tests.console.rights import ACTS, NEEDS, RIGHTS
from tests.store.making import rows, says

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3", "C4"), pytest.mark.django_db(transaction=True)]

PHONE = {"viewport": {"width": 390, "height": 844}}
OTHER = '{"args": [7], "kwargs": {}}'

TYPED = {
    "edits": {"args": OTHER},
    "reprioritisations": {"priority": "7"},
    "reschedulings": {"due_at": "2090-01-31T12:00"},
    "limits": {"limit": "number", "concurrency": "3"},
}
"""What the form of an act asks for besides a reason."""


def done(page: Page, said: str) -> None:
    """What was done is said aloud."""
    expect(page.locator("html")).to_have_attribute("data-announced", re.compile(re.escape(said)))


@pytest.mark.requirement("L26")
def test_the_keyboard_alone_goes_to_every_page_and_does_every_kind_of_act(opened: Opener, operator: User) -> None:
    worker = scenes.worker("mail", pool="heavy", lease_seconds=600)
    number = test_rights.a_backfill("pause_backfill")
    first, second, third, last = [scenes.job_in(State.QUARANTINED) for _ in range(4)]
    scheduled = scenes.job_in(State.SCHEDULED, queue="mail")
    page = opened("/")
    page.context.add_init_script(WATCH)
    press, type_ = page.keyboard.press, page.keyboard.type

    def goes(key: str, address: str) -> None:
        press("g")
        press(key)
        page.wait_for_url(f"**{address}")

    def seeks(what: str) -> None:
        goes("j", "/jobs/")
        press("/")
        type_(what)
        press("Enter")
        page.wait_for_url("**/jobs/?*q=*")

    def asks(link: str) -> None:
        stepped_to(page, f'a[data-dialog][href*="{link}"]')
        press("Enter")
        expect(page.get_by_role("dialog")).to_be_visible()

    def opens(address: str) -> None:
        link = f'tbody [href="{address}"]'
        for _ in range(9):
            press("j")
            if page.evaluate("link => document.activeElement.matches(link)", link):
                break
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        press("Enter")
        page.wait_for_url(f"**{address}")

    # Jobs: one of them, and two that are ticked.
    press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    seeks("state:quarantined")
    opens(f"/jobs/{last}/")
    asks(f"/{last}/reinstatements/")
    expect(page.get_by_label("Reason")).to_be_focused()
    type_("mended")
    press("Enter")
    done(page, f"Job {last} was reinstated: it is available again.")
    seeks("state:quarantined")
    for key in ("j", "x", "j", "x"):
        press(key)
    stepped_to(page, '#selection [formaction$="/discards/"]', back=True)
    press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Discard 2 jobs?")
    expect(page.get_by_label("Reason")).to_be_focused()
    type_("twice the same")
    press("Enter")
    done(page, "2 jobs were discarded.")

    # What stands behind "More", and forms with fields of their own.
    seeks("state:scheduled")
    opens(f"/jobs/{scheduled}/")
    asks("/reprioritisations/")
    press("Control+A")
    type_("7")
    press("Enter")
    done(page, f"Job {scheduled} has priority 7 now.")
    seeks("state:quarantined")
    opens(f"/jobs/{first}/")
    asks("/edits/")  # its arguments have to be revealed first
    type_("whose invoice")
    press("Enter")
    expect(page.get_by_role("textbox", name="Arguments")).to_be_focused()
    press("Control+A")
    type_(OTHER)
    stepped_to(page, "form.act button")
    press("Enter")
    expect(page.get_by_role("region", name="What differs")).to_be_visible()
    stepped_to(page, "form.act button")
    press("Enter")
    done(page, f"runs job {first} with other arguments.")

    # A whole reason, and the undoing of it.
    goes("u", "/quarantine/")
    asks("/quarantine/reinstatements/")
    press("Enter")
    done(page, "1 job was reinstated.")
    stepped_to(page, ".news a[data-dialog]")
    press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Undo this?")
    press("Enter")
    done(page, "1 job is held back.")

    # Queues, a worker, a backfill.
    goes("q", "/queues/")
    asks("/queues/pauses/?queue=mail")
    type_("the provider is down")
    press("Enter")
    done(page, "Queue mail is paused")
    asks("/queues/resumptions/?queue=mail")
    press("Enter")
    done(page, "Queue mail is claimed again.")
    asks("/queues/limits/?queue=mail")
    type_("3")
    press("Tab")
    type_("it takes no more")
    press("Enter")
    done(page, "Queue mail from now on: 3 at once.")
    opens("/queues/one/?queue=mail")
    asks("/queues/cancellations/?queue=mail")
    type_("wrong recipients")
    press("Enter")
    done(page, "1 job was cancelled.")
    goes("w", "/workers/")
    stepped_to(page, "[name=pool]")
    type_("h")  # the page is asked for at once
    page.wait_for_url("**/workers/?*pool=heavy*")
    expect(page.locator("tbody tr[data-key]")).to_have_count(1)
    opens(f"/workers/{worker}/")
    asks(f"/workers/{worker}/drains/")
    expect(page.get_by_role("dialog")).to_contain_text("No other live worker serves this queue: mail")
    type_("its host reboots")
    press("Enter")
    done(page, f"Worker {worker} is told to drain")
    expect(page.locator("header.job .state")).to_have_text("draining")
    goes("b", "/backfills/")
    opens(f"/backfills/{number}/")
    asks(f"/backfills/{number}/pauses/")
    type_("the nightly run comes first")
    press("Enter")
    done(page, "It is paused")
    goes("a", "/audit/")
    expect(page.locator("tbody tr").first).to_contain_text("the nightly run comes first")
    goes("o", "/")
    kept = [(entry.act, entry.reason) for entry in reversed(run(audit.entries(authority=scenes.SYSTEM)))]
    assert kept == [
        ("reinstate", "mended"),
        ("discard", "twice the same"),
        ("reprioritise", ""),
        ("reveal", "whose invoice"),
        ("edit", ""),
        ("reinstate", ""),
        ("quarantine", "done by mistake"),
        ("pause", "the provider is down"),
        ("resume", ""),
        ("limit", "it takes no more"),
        ("cancel", "wrong recipients"),
        ("drain_worker", "its host reboots"),
        ("pause_backfill", "the nightly run comes first"),
    ]
    assert {scenes.state_of(one) for one in (second, third)} == {State.DISCARDED}


def fits(page: Page) -> None:
    """Nothing scrolls sideways, once its style has been loaded."""
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, page.url


def sent(page: Page, typed: dict[str, str]) -> None:
    """Fill in the form as far as it asks, and send it."""
    form = page.locator("form.act")
    for name, value in typed.items():
        field = form.locator(f"[name={name}]")
        if field.count():
            if field.evaluate("field => field.matches('select')"):
                field.select_option(value)
            else:
                field.fill(value)
    fits(page)
    form.get_by_role("button").click()


def test_without_javascript_every_act_is_done_on_a_phone_in_the_dark(opened: Opener, operator: User) -> None:
    scene = test_rights.Scene("stranger")
    page = opened("/jobs/", refused=403, java_script_enabled=False, color_scheme="dark", **PHONE)
    swept = ["held-reinstatements", "queue-cancellations"]
    before_others = ["resumptions", "roll-cancellations"]
    first = [*before_others, *sorted(ACTS - {*before_others, *swept, "held-discards"}), *swept]
    addresses = {name: test_matrix.opened_for(scene, name)[0] for name in first}
    undone = {}
    for name in (*first, "held-discards"):
        address = addresses.get(name) or test_matrix.opened_for(scene, name)[0]
        says(scene.worker)  # the journey may take longer than its lease
        typed = {"reason": f"because of {name}", **TYPED.get(name, {})}
        page.goto(address)
        if RIGHTS[name]["operator"] != "yes":
            expect(page.get_by_text(f"It needs the permission shiftboss.{NEEDS[name]}.")).to_be_visible()
            operator.user_permissions.add(Permission.objects.get(codename=NEEDS[name]))
            page.goto(address)
        if name == "edits":
            sent(page, {"reason": "to see its arguments first"})
        before = dict(test_matrix.record())
        sent(page, typed)
        if name == "edits":
            sent(page, typed)  # once it was shown what differs
        expect(page.locator("main .news, main .paused[role=status]")).to_be_visible()
        fits(page)
        changed = {table for table, digest in test_matrix.record() if digest != before[table]}
        if "shiftboss_audit" not in changed or (changed == {"shiftboss_audit"} and "reveals" not in name):
            undone[name] = changed
        [(by, reason)] = rows("select actor_name, reason from shiftboss_audit order by id desc limit 1")
        assert (by, reason) == ("operator", typed["reason"])
    assert undone == {}


def test_a_viewer_sees_all_but_what_is_withheld_and_is_offered_nothing(opened: Opener, operator: User) -> None:
    there = corners(operator)
    scenes.person("vera", role="viewer")
    page = opened("/login/", logged_in=False, refused=403)
    log_in(page, "vera")
    for name, addresses in PAGES.items():
        if RIGHTS[name]["viewer"] == "yes" and name != "login":
            page.goto(there.at(addresses[0]))
            expect(page.get_by_role("button", name="Log out")).to_be_visible()
            assert page.locator("main form[method=post], main a[data-dialog], #selection").count() == 0, name
    page.goto(there.at("/jobs/{quarantined}/"))
    withheld = page.locator(".withheld").all_text_contents()
    assert any("shiftboss.view_arguments" in one for one in withheld)
    assert any("shiftboss.view_traceback" in one for one in withheld)
    expect(page.locator(".trace, #arguments ~ .document")).to_have_count(0)
    page.goto("/jobs/?q=args.customer%3D7")
    expect(page.locator(".mistakes")).to_contain_text("shiftboss.view_arguments")
    for address, needed in {
        ASKED["discards"][1]: NEEDS["discards"],
        ASKED["pauses"][1]: NEEDS["pauses"],
        CHOSEN["many-reruns"]: NEEDS["many-reruns"],
        "/audit/": NEEDS["audit"],
    }.items():  # of all the others the test of rights knows
        page.goto(there.at(address))
        expect(page.get_by_text(f"It needs the permission shiftboss.{needed}.")).to_be_visible()


def test_whoever_has_not_logged_in_gets_to_where_they_wanted_by_the_login_alone(
    opened: Opener, operator: User
) -> None:
    there = corners(operator)
    page = opened("/", logged_in=False)
    for addresses in PAGES.values():
        page.goto(there.at(addresses[0]))
        expect(page).to_have_title("Log in · Shiftboss")
        assert page.get_by_role("link").count() == 0
    wanted = there.at("/jobs/{scheduled}/cancellations/")
    page.goto(wanted)
    log_in(page, "operator")
    assert page.url.endswith(wanted)
    page.get_by_label("Reason").fill("wrong customer")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator(".news")).to_have_text(f"Job {there.scheduled} was cancelled.")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    wanted = "/jobs/?state=quarantined"
    page.goto(wanted)
    log_in(page, "operator")
    assert page.url.endswith(wanted)
