"""A real browser, and an operator who has logged in with it."""

import os
import re
import threading
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.console import scenes
from tests.waiting import wait_for

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

PATIENCE = 20_000
"""Milliseconds within which whatever is expected of a page comes true, on the slowest of machines."""

Opener = Callable[..., Page]

looked_at_each_time = pytest.fixture(autouse=True)(scenes.looked_at_each_time)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One Chromium for the tests here. Its loop runs in this thread, which Django must not mistake for async code,
    and where no other loop can run meanwhile."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(autouse=True)
def kept_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection of the browser keeps one to the database, instead of making one for every page."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)


@pytest.fixture
def operator(transactional_db: None) -> User:
    """Somebody on call."""
    return scenes.person("operator", role="operator")


@pytest.fixture
def opened(chromium: Browser, live_server: LiveServer, operator: User) -> Iterator[Opener]:
    """Opens an address with the operator logged in; whatever the browser complains of fails the test.

    `refused`: an answer with this status is expected, and no complaint. `hurried`: the page's own clock goes as
    always, and can be put forward with `later`.
    """
    complaints: list[str] = []
    contexts = []

    def open_page(
        path: str,
        *,
        logged_in: bool = True,
        refused: int | None = None,
        hurried: bool = False,
        **options: object,
    ) -> Page:
        def note(message: ConsoleMessage) -> None:
            expected = refused is not None and re.search(rf"[Ss]tatus (of|Error Code) {refused}", message.text)
            if message.type in {"error", "warning"} and not expected:
                complaints.append(message.text)

        context = chromium.new_context(base_url=live_server.url, **options)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        if logged_in:
            client = Client()
            client.force_login(operator)
            cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
            context.add_cookies([cookie])  # type: ignore[list-item]
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if hurried:
            page.clock.install()
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # A page that refreshes itself may have asked for one more fragment; the flush after the test takes the locks
    # of all tables in an order of its own, and would deadlock with a read that is still under way.
    wait_for(lambda: not _requests_under_way(), seconds=10)
    assert complaints == []


WATCH = """
addEventListener("DOMContentLoaded", () =>
  new MutationObserver((all) => {
    for (const { target, addedNodes } of all)
      if (addedNodes.length && target.matches(".news[role=status]"))
        document.documentElement.dataset.announced = target.textContent;
  }).observe(document, { childList: true, subtree: true }));
"""
"""A status is announced when something is put into it after the page was loaded."""


def later(page: Page, seconds: float = 2.0) -> None:
    """Put the page's clock forward, by a refresh unless told otherwise. It has to be `hurried`."""
    page.clock.fast_forward(round(seconds * 1000))


def log_in(page: Page, name: str = "operator") -> None:
    """Log in by the form that is shown."""
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def stepped_to(page: Page, selector: str, *, back: bool = False, most: int = 120) -> None:
    """Bring the focus there with the keys that do so: past what every page has, and opening what hides it."""
    for _ in range(most):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        match page.evaluate(WHERE, selector):
            case "there":
                return
            case "before":
                page.keyboard.press("Enter")
    raise AssertionError(f"not reached with {most} steps: {selector}")


WHERE = """
selector => {
  const focused = document.activeElement;
  if (focused.matches(selector)) return "there";
  return focused.matches(`.skip, details:not([open]):has(${selector}) > summary`) ? "before" : "elsewhere";
}
"""


def _requests_under_way() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]
