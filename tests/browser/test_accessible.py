"""All rules of WCAG 2.2, levels A and AA, on every page and every form of an act, with something in every corner,
in light, in the dark and on a phone: no violation. And each of them fits a phone, and keeps its own policy.

The rules are axe's (`axe/`, under the Mozilla Public License 2.0). All of them are tried in light on a desk, on
all of the document, and in the dark on a phone, where a form is open on that alone. On a dark desk and a bright
phone those of colours are tried again.
"""

from itertools import groupby
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from playwright.sync_api import Page, expect

from shiftboss.console.urls import urlpatterns
from tests.browser.conftest import Opener, stepped_to
from tests.browser.corners import ASKED, CHOSEN, NO_SUCH_JOB, OF_QUARANTINED, PAGES, Corners, corners

pytestmark = [pytest.mark.browser, pytest.mark.requirement("C3"), pytest.mark.django_db(transaction=True)]

AXE = Path(__file__).parent / "axe" / "axe.min.js"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
ALL: dict[str, object] = {"type": "tag", "values": LEVELS}
OF_COLOURS: dict[str, object] = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}

TRY = """
async ([runOnly, whole]) => {
  const where = (!whole && document.querySelector("dialog[open]")) || document;
  const found = await axe.run(where, { runOnly, resultTypes: ["violations"], preload: whole });
  return found.violations.flatMap(({ id, nodes }) => nodes.map((one) => `${id}: ${one.html}`));
}
"""

FITS = """
() => {
  const root = document.documentElement;
  const above = document.querySelector("dialog[open]") ?? document;
  const wrong = [];
  for (const direction of ["rtl", "ltr"]) {
    root.dir = direction;
    if (Math.max(root.scrollWidth, document.querySelector("dialog[open]")?.scrollWidth ?? 0) > innerWidth)
      wrong.push(`scrolls sideways, ${direction}`);
    const rows = [...document.querySelectorAll("table:not(.events) > tbody tr")];
    const tall = rows.find((row) => row.clientHeight >= 700);
    if (tall) wrong.push(`a row that is too tall, ${direction}: ${tall.dataset.key}`);
  }
  const pressed = "a[href], button, input:not([type=hidden]), select, textarea, summary";
  for (const target of above.querySelectorAll(pressed)) {
    if (!target.checkVisibility({ visibilityProperty: true }) || target.matches(".skip")) continue;
    target.scrollIntoView({ block: "center", inline: "center" });
    const { left, top, width, height } = target.getClientRects()[0];
    const there = document.elementFromPoint(left + width / 2, top + height / 2);
    if (!target.contains(there)) wrong.push(`out of reach: ${target.outerHTML} behind ${there?.outerHTML}`);
  }
  scrollTo(0, 0);
  return wrong;
}
"""
"""What does not fit a screen, whichever way is read: nothing is wider than it, and whatever can be pressed can be
brought to where a finger meets it."""


def violations(page: Page, rules: dict[str, object], *, whole: bool = False) -> list[str]:
    """What axe says of the page as it stands: of the whole of it, or of the form that is open above it."""
    found: list[str] = page.evaluate(TRY, [rules, whole])
    return found


def wrong(page: Page) -> list[str]:
    """What is wrong with what is shown, in light, in the dark and on a phone."""
    page.wait_for_load_state()
    found = [f"in the light: {one}" for one in violations(page, ALL, whole=True)]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("scrolls sideways")
    page.emulate_media(color_scheme="dark")
    found += [f"in the dark: {one}" for one in violations(page, OF_COLOURS)]
    page.set_viewport_size({"width": 390, "height": 844})
    found += [f"on a phone in the dark: {one}" for one in violations(page, ALL)]
    found += [f"on a phone: {one}" for one in page.evaluate(FITS)]
    page.emulate_media(color_scheme="light")
    found += [f"on a phone in the light: {one}" for one in violations(page, OF_COLOURS)]
    page.set_viewport_size({"width": 1280, "height": 900})
    return found


@pytest.fixture
def looked_at(opened: Opener) -> Page:
    """A page whose every document knows axe, and is refreshed when it is told to."""
    page = opened("/queues/", refused=4, viewport={"width": 1280, "height": 900})
    page.get_by_label("Refresh").select_option("off")
    page.context.add_init_script(path=AXE)
    return page


def told(found: dict[str, list[str]]) -> str:
    return "\n".join(f"{where}: {one}" for where, broken in found.items() for one in broken)


def test_every_address_is_looked_at() -> None:
    assert {pattern.name for pattern in urlpatterns} == {*PAGES, *ASKED, *CHOSEN, "logout"}


def test_no_page_breaks_a_rule_in_light_in_the_dark_and_on_a_phone(looked_at: Page, operator: User) -> None:
    there, page = corners(operator), looked_at
    found: dict[str, list[str]] = {}
    for address in (*(address for of_one in PAGES.values() for address in of_one), NO_SUCH_JOB, *CHOSEN.values()):
        page.goto(there.at(address))
        found[address] = wrong(page)
        if page.locator("#live").count():
            found[address] += after_a_refresh(page)
    page.goto("/queues/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    found["the keys"] = wrong(page)
    page.keyboard.press("Escape")
    found["arguments"] = of_arguments(page, there)
    assert not any(found.values()), told(found)


def of_arguments(page: Page, there: Corners) -> list[str]:
    """What is wrong where they are revealed: the form of others, with a mistake and with what differs; the job."""
    page.goto(there.at(ASKED["edits"][1]))
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("whose invoice")
    page.keyboard.press("Enter")
    field = page.get_by_role("textbox", name="Arguments")
    found = []
    for typed in ("[", '{"args": [7], "kwargs": {}}'):
        field.fill(typed)
        page.get_by_role("button", name="Show what differs").click()
        expect(page.locator("#wrong_args, .difference")).to_be_visible()
        found += wrong(page)
    page.goto(there.at(OF_QUARANTINED))
    expect(page.locator("#arguments ~ .document")).to_be_visible()
    return found + wrong(page)


def after_a_refresh(page: Page) -> list[str]:
    """What breaks the policy of the page once it has been morphed into an answer with all of it."""
    page.evaluate("document.getElementById('live').removeAttribute('hx-headers')")
    with page.expect_response(lambda response: response.request.headers.get("hx-request") == "true") as answer:
        page.keyboard.press(".")
    assert answer.value.status == 200
    expect(page.locator("#live[hx-headers]")).to_be_attached()
    styled = page.locator("#live [style]:not([data-chart] *), script:not([src])")
    return [f"inline: {one}" for one in styled.evaluate_all("all => all.map(one => one.outerHTML)")]


def test_no_form_above_a_page_breaks_a_rule_and_the_keyboard_opens_and_leaves_it(
    looked_at: Page, operator: User
) -> None:
    there, page = corners(operator), looked_at
    operator.user_permissions.add(
        *Permission.objects.filter(codename__in=["stop_worker", "stop_program", "kill_program"])
    )
    found: dict[str, list[str]] = {}
    for where, names in groupby(ASKED, lambda name: ASKED[name][0]):
        page.goto(there.at(where))
        for name in names:
            link = f'a[data-dialog][href^="{there.at(ASKED[name][1])}"]'
            stepped_to(page, link)
            page.keyboard.press("Enter")
            expect(page.get_by_role("dialog")).to_be_visible()
            expect(page.locator("dialog form :is(input, textarea, select):focus")).to_have_count(1)
            found[name] = wrong(page)
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_be_hidden()
            expect(page.locator(link).first).to_be_focused()
    assert not any(found.values()), told(found)


def test_the_rules_find_what_is_wrong(looked_at: Page) -> None:
    page = looked_at
    page.goto("/login/")
    assert wrong(page) == []
    page.evaluate("document.querySelector('label').remove(); document.documentElement.removeAttribute('lang')")
    page.evaluate("document.querySelector('main').append(document.createElement('hr'))")
    broken = told({"": wrong(page)})
    assert "html-has-lang" in broken
    assert "label" in broken
