"""All rules of WCAG 2.2, levels A and AA, on every page with something in every corner: no violation.

The rules are axe's (`axe/`, under the Mozilla Public License 2.0). In the dark and on a phone only those are tried
again that depend on colours and sizes.
"""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from shiftboss import acts
from shiftboss.permissions import Act, Person, Via
from shiftboss.queue.states import State
from shiftboss.queue.store import backfill, histograms
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.store.statement import run
from tests.browser.conftest import Opener
from tests.console import scenes
from tests.store.making import execute

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3"), pytest.mark.django_db(transaction=True)]

AXE = Path(__file__).parent / "axe" / "axe.min.js"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OF_COLOURS_AND_SIZES = ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"]

TRY = """
async runOnly => {
  const found = await axe.run(document, { runOnly, resultTypes: ["violations"], preload: runOnly.type === "tag" });
  return found.violations.flatMap(({ id, nodes }) => nodes.map((one) => `${id}: ${one.html}`));
}
"""


def violations(page: Page, *, all_rules: bool) -> list[str]:
    """What axe says of the page as it stands."""
    tag, rule = {"type": "tag", "values": LEVELS}, {"type": "rule", "values": OF_COLOURS_AND_SIZES}
    found: list[str] = page.evaluate(TRY, tag if all_rules else rule)
    return found


def scene(operator: User) -> list[str]:
    """Something in every corner of every page; the addresses of all pages."""
    by = Person.of_user(operator, via=Via.CONSOLE)
    worker = scenes.worker("default", "mail")
    scenes.heartbeat(worker, in_use=3, lag_ms=4000, losses=2, memory_kb=123_456)
    scenes.completed_job(worker)
    execute("update shiftboss_finished set finished_at = finished_at - interval '2 minutes'")
    run(histograms.write(authority=scenes.SYSTEM))
    quarantined = scenes.quarantined_job(worker)
    waiting = scenes.job_in(State.SCHEDULED, queue="mail")
    running = scenes.job_in(State.RUNNING, queue="other")
    acts.pause("mail", by=by, reason="the provider is down")
    acts.limit("default", by=by, limit=3, reason="the provider takes no more")
    held = acts.on_many(Act.QUARANTINE, [scenes.job(), scenes.job()], by=by, reason="by mistake")
    new = NewBackfill(
        name="receipts", task=scenes.TASK, queue="x", priority=0, concurrency=1, failure_limit=1, loss_limit=3
    )
    number = run(backfill.begin(new, authority=scenes.SYSTEM))
    run(backfill.add(number, [("a", "{}"), ("b", "{}")], authority=scenes.SYSTEM))
    return [
        *("/", "/jobs/?state=quarantined", "/jobs/?q=stat:x+task:invoice", "/jobs/?q=queue:nowhere"),
        *(f"/jobs/{quarantined}/", f"/jobs/{waiting}/", f"/jobs/{running}/", f"/jobs/{waiting}/reschedulings/"),
        *(
            "/quarantine/",
            "/quarantine/discards/?reason=failures_exhausted",
            f"/operations/{held.operation}/undoings/",
        ),
        f"/jobs/many/discards/?job={quarantined}&job={waiting}",
        *(
            "/queues/",
            "/queues/one/?queue=mail",
            "/queues/limits/?queue=mail",
            "/queues/cancellations/?queue=mail",
        ),
        *("/workers/", f"/workers/{worker}/", f"/workers/{worker}/drains/"),
        *(
            "/backfills/",
            f"/backfills/{number}/",
            f"/backfills/{number}/pauses/",
            "/audit/",
            "/login/",
            "/jobs/999999/",
        ),
    ]


def test_no_page_breaks_a_rule_in_light_in_the_dark_and_on_a_phone(opened: Opener, operator: User) -> None:
    addresses = scene(operator)
    page = opened("/queues/", refused=4, viewport={"width": 1280, "height": 900})
    page.context.add_init_script(path=AXE)
    found: dict[str, list[str]] = {}

    def tried(what: str, *, all_rules: bool) -> None:
        if broken := violations(page, all_rules=all_rules):
            found[what] = broken

    for address in addresses:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(address)
        tried(address, all_rules=True)
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 844})
        tried(f"{address} on a phone in the dark", all_rules=False)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(addresses[1])
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    tried("the keys", all_rules=True)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Discard", exact=True).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    tried("a form above a page", all_rules=True)
    assert found == {}, "\n".join(f"{where}: {one}" for where, broken in found.items() for one in broken)


def test_the_rules_find_what_is_wrong(opened: Opener) -> None:
    page = opened("/login/", logged_in=False)
    page.context.add_init_script(path=AXE)
    page.goto("/login/")
    assert violations(page, all_rules=True) == []
    page.evaluate("document.querySelector('label').remove(); document.documentElement.removeAttribute('lang')")
    broken = " ".join(violations(page, all_rules=True))
    assert "html-has-lang" in broken
    assert "label" in broken
