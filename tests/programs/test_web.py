"""What `shiftboss up` serves: the project's own application, and the static files that it leaves to others."""

import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen
from wsgiref.util import setup_testing_defaults

import pytest
from django.core.wsgi import get_wsgi_application

from shiftboss.supervisor_conf import programs, web
from tests.programs.tree import ROOT, environment, free_port
from tests.waiting import wait_for

STYLES = "/static/shiftboss/console.css"
OWN = "tests.programs.own_settings"


def answer(application: Callable[..., Any], path: str) -> tuple[str, bytes]:
    """The status and the body of an application's answer to a GET."""
    asked: dict[str, Any] = {"PATH_INFO": path, "wsgi.input": io.BytesIO()}
    setup_testing_defaults(asked)
    told: list[str] = []
    parts = application(asked, lambda status, headers: told.append(status))
    body = b"".join(parts)
    getattr(parts, "close", lambda: None)()
    return told[0], body


def without_whitenoise(settings: Any) -> None:
    """Make the settings those of a project that serves no files."""
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]


@pytest.mark.requirement("C3", "C7")
def test_the_console_of_a_project_of_ones_own_has_its_styles(tmp_path: Path) -> None:
    port = free_port()
    command = programs.web_server(f"127.0.0.1:{port}")
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=ROOT, env=environment(tmp_path, DJANGO_SETTINGS_MODULE=OWN), stdout=log, stderr=log
        )
    try:

        def styles() -> bytes:
            try:
                with urlopen(f"http://127.0.0.1:{port}{STYLES}", timeout=5) as page:
                    assert page.headers["Content-Type"].startswith("text/css")
                    content: bytes = page.read()
                    return content
            except URLError:
                return b""

        assert wait_for(styles, seconds=20) == (ROOT / "shiftboss" / STYLES[1:]).read_bytes()
    finally:
        server.terminate()
        server.wait(timeout=20)


@pytest.mark.django_db
@pytest.mark.parametrize("debug", [False, True])
def test_pages_are_the_projects_and_files_those_of_its_apps(settings: Any, debug: bool) -> None:
    without_whitenoise(settings)
    settings.DEBUG = debug
    assert answer(get_wsgi_application(), STYLES)[0].startswith("404")
    application = web.application()
    assert answer(application, STYLES)[0] == "200 OK"
    assert answer(application, "/static/shiftboss/")[0].startswith("404")
    status, page = answer(application, "/login/")
    assert status == "200 OK"
    assert b'type="password"' in page


@pytest.mark.parametrize(
    ("urls", "path"),
    [
        ("shiftboss.site.urls", "/"),
        ("tests.console.prefixed_urls", "/ops/queue/"),
        ("tests.programs.unmounted_settings", None),
    ],
)
def test_the_console_is_where_the_project_mounts_it(settings: Any, urls: str, path: str | None) -> None:
    settings.ROOT_URLCONF = urls
    assert web.console_path() == path


def test_addresses_that_cannot_be_loaded_are_named_with_their_error(settings: Any) -> None:
    settings.ROOT_URLCONF = "no.such.urls"
    with pytest.raises(web.UrlsBroken, match=r"no\.such\.urls.*No module named"):
        web.console_path()


def test_what_was_collected_is_served_too(settings: Any, tmp_path: Path) -> None:
    without_whitenoise(settings)
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "shop.0123456789ab.css").write_text("body {}")
    application = web.application()
    assert answer(application, "/static/shop.0123456789ab.css") == ("200 OK", b"body {}")
    assert answer(application, STYLES)[0] == "200 OK"


def test_a_project_that_has_whitenoise_or_another_place_for_its_files_is_left_alone(settings: Any) -> None:
    plain = type(get_wsgi_application())
    assert type(web.application()) is plain
    without_whitenoise(settings)
    assert type(web.application()) is not plain
    for elsewhere in ("https://files.example/static/", None):
        settings.STATIC_URL = elsewhere
        assert type(web.application()) is plain
