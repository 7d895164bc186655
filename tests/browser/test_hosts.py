"""Two hosts, each with a supervisord and an agent of its own, steered from one console."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection
from playwright.sync_api import Locator, expect

from shiftboss.supervisor_conf import incarnations, render
from shiftboss.supervisor_conf.programs import Program
from tests.browser.conftest import Opener
from tests.programs.supervisords import START_SECONDS, Supervisord, supervisord
from tests.programs.test_render import installation
from tests.programs.test_supervisor_listener import program
from tests.programs.tree import ROOT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.requirement("C3", "L28", "B15"),
    pytest.mark.django_db(transaction=True),
]

STARTED = START_SECONDS * 1000
COUNTS = "n=0; while :; do n=$((n+1)); echo line $n of $SHIFTBOSS_HOST; sleep 0.3; done"


@contextmanager
def host(name: str, home: Path) -> Iterator[Supervisord]:
    """A supervisord with a program that counts, and the agent that tells of it under this name."""
    listener = Program(
        name="listener",
        command=[sys.executable, "-P", "-m", "django", "shiftboss_listener", "--home", str(home)],
        priority=1,
        stop_seconds=5,
    )
    found = [listener, program("web", COUNTS, restart=True)]
    given = installation(home)
    incarnations.make_folders(home, found)
    file = home / "supervisord.conf"
    file.write_text(render.render(given, found))
    server = urlsplit(os.environ["DATABASE_URL"])
    surroundings = {
        "SHIFTBOSS_HOST": name,
        "DATABASE_URL": server._replace(path=f"/{connection.settings_dict['NAME']}").geturl(),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(ROOT),
    }
    with supervisord(file, render.socket_path(home), **surroundings) as running:
        yield running


def test_two_hosts_are_steered_from_one_console(opened: Opener, dsn: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        served = {name: stack.enter_context(host(name, tmp_path / name)) for name in ("web-1", "web-2")}
        before = {name: one.pid_of("web") for name, one in served.items()}
        page = opened("/hosts/")

        def row(name: str) -> Locator:
            return page.locator(f"tr[data-key='{name}/web']")

        for name in served:
            expect(row(name).locator(".state")).to_have_text("running", timeout=STARTED)
        row("web-1").get_by_role("link", name="web", exact=True).click()
        page.get_by_role("link", name="Restart").click()
        page.get_by_label("Reason").fill("it leaks")
        page.get_by_role("button", name="Restart program").click()
        expect(page.locator(".news")).to_contain_text("web-1 is asked to restart web.")
        asked = page.locator("tr[data-key^='command-']")
        expect(asked).to_contain_text("Restart web")
        expect(asked.locator(".state")).to_have_text("done", timeout=STARTED)
        after = {name: one.pid_of("web") for name, one in served.items()}
        assert after["web-1"] != before["web-1"]
        assert after["web-2"] == before["web-2"]

        page.goto("/hosts/web-2/web/log/")
        page.get_by_role("button", name="Show log").click()
        last = page.locator(".log li").last
        expect(last).to_contain_text("of web-2", timeout=STARTED)
        seen = str(last.text_content())
        page.get_by_label("Follow").check()
        expect(last).not_to_have_text(seen, timeout=STARTED)
        page.get_by_label("Follow").uncheck()
        page.get_by_label("Lines with").fill("of WEB-1")
        page.get_by_label("Lines with").press("Enter")
        expect(page.get_by_text("No line holds that.")).to_be_visible()
