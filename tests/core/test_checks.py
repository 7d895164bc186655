"""What `manage.py check` says of setups that cannot work, or leave a door open."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.checks import run_checks

from shiftboss import checks, conf
from shiftboss.queue import registry, resources

ROOT = Path(__file__).resolve().parents[2]
BACKEND = "shiftboss.queue.backend.ShiftbossBackend"
HERE = "tests.core.test_checks"
APPS = ["django.contrib.auth", "django.contrib.contenttypes", "shiftboss"]
MISSPELT = "tests.core.misspelt.tasks"

SCENES: dict[str, list[dict[str, Any]]] = {
    "shiftboss.E001": [{"SHIFTBOSS": {"LEASE_SECOND": 60}}, {"SHIFTBOSS": {"LEASE_SECONDS": 14}}],
    "shiftboss.E002": [{"SHIFTBOSS": {"DATABASE": "nowhere"}}],
    "shiftboss.E003": [
        {"TASKS": {"default": {"BACKEND": BACKEND, "OPTIONS": {"autority": 1}}}},
        {"TASKS": {"default": {"BACKEND": BACKEND, "OPTIONS": {"authority": "kim"}}}},
    ],
    "shiftboss.E004": [
        {"MIDDLEWARE": []},
        {"MIDDLEWARE": [*checks.NEEDED[:2]]},
    ],
    "shiftboss.E005": [{"TEMPLATES": [{"BACKEND": "django.template.backends.django.DjangoTemplates"}]}],
    "shiftboss.E006": [{"DATABASE_ROUTERS": [f"{HERE}.EverythingElsewhere"]}],
    "shiftboss.E007": [{"DATABASE_ROUTERS": [f"{HERE}.NoTables"]}],
    "shiftboss.E008": [
        {"SHIFTBOSS": {"SECRET_PROVIDER": "nowhere.at_all"}},
        {"SHIFTBOSS": {"REDACTOR": "nowhere.at_all"}},
        {"SHIFTBOSS": {"QUEUE_AUTHORIZER": "nowhere.may"}},
        {"SHIFTBOSS": {"QUEUE_AUTHORIZER": "may"}},
        {"SHIFTBOSS": {"WATCH_AUTHORIZER": f"{HERE}.nothing"}},
        {"SHIFTBOSS": {"WATCH_AUTHORIZER": f"{HERE}.HERE"}},
        {"SHIFTBOSS": {"WATCH_AUTHORIZER": f"{HERE}.later"}},
    ],
    "shiftboss.E009": [{"INSTALLED_APPS": [*APPS, "tests.core.misspelt"]}],
    "shiftboss.W008": [{"INSTALLED_APPS": [*APPS, "tests.runtime.broken"]}],
    "shiftboss.W001": [{"TASKS": {}}],
    "shiftboss.W007": [
        {"SHIFTBOSS": {"OBSERVERS": ["tests.runtime.observers.Nobody"]}},
        {"SHIFTBOSS": {"OBSERVERS": ["tests.runtime.observers.Everything", "tests.runtime.observers.Deaf"]}},
        {"SHIFTBOSS": {"OBSERVERS": ["tests.runtime.observers.Late"]}},
    ],
    "shiftboss.W002": [{"INSTALLED_APPS": APPS}],
    "shiftboss.W003": [{"MIDDLEWARE": checks.NEEDED}],
    "shiftboss.W004": [{"DEBUG": True, "ALLOWED_HOSTS": ["*"]}],
    "shiftboss.W005": [
        {"SESSION_COOKIE_SECURE": False},
        {"CSRF_COOKIE_SECURE": False},
        {"SESSION_COOKIE_SECURE": False, "CSRF_USE_SESSIONS": True},
    ],
    "shiftboss.W006": [{"ALLOWED_HOSTS": ["*"]}],
    "shiftboss.W009": [
        {"CACHES": {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}},
        {"CACHES": {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}},
    ],
}
"""For each check, settings at which it speaks."""

WHOLE = {
    "SESSION_COOKIE_SECURE": True,
    "CSRF_COOKIE_SECURE": True,
    "ALLOWED_HOSTS": ["ops.example"],
    "DEBUG": False,
    "CACHES": {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}},
}


async def later(*_: Any) -> bool:
    """An authorizer of which nothing can be had at once."""
    return True


class EverythingElsewhere:
    """A router of a project that has another database."""

    def db_for_read(self, model: type, **_: Any) -> str:
        return "elsewhere"

    db_for_write = db_for_read


class NoTables:
    """A router that lets nothing migrate."""

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool:
        return False


class OwnSessionMiddleware(SessionMiddleware):
    """A project's own kind of sessions."""


@pytest.fixture(autouse=True)
def whole(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A project of which no check complains, and which knows no task of other tests; the configuration is read
    again before and after the test."""
    monkeypatch.setattr(registry, "_names", set())
    monkeypatch.setattr(resources, "_declared", {})
    monkeypatch.delitem(sys.modules, MISSPELT, raising=False)
    _apply(settings, WHOLE)
    conf.get.cache_clear()
    yield
    conf.get.cache_clear()


def _apply(settings: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(settings, name, value)
    conf.get.cache_clear()


def said(*, deploy: bool = True) -> list[Any]:
    """What our checks say."""
    found = run_checks(include_deployment_checks=deploy)
    return [message for message in found if str(message.id).startswith("shiftboss.")]


@pytest.mark.requirement("C7")
def test_a_whole_project_hears_nothing() -> None:
    assert said() == []


@pytest.mark.requirement("C7", "C3")
@pytest.mark.parametrize(("check", "scene"), [(id, scene) for id, scenes in SCENES.items() for scene in scenes])
def test_each_check_speaks_with_its_level_and_a_hint(settings: Any, check: str, scene: dict[str, Any]) -> None:
    _apply(settings, scene)
    [message] = [message for message in said() if message.id == check]
    assert message.is_serious() is check.startswith("shiftboss.E")
    assert message.hint
    [known] = [known for known in checks.KNOWN if known.id == check]
    assert (check in {message.id for message in said(deploy=False)}) is not known.deploy


@pytest.mark.parametrize("scenes", [SCENES[id] for id in ("shiftboss.E004", "shiftboss.E005", "shiftboss.W004")])
@pytest.mark.parametrize("urls", ["tests.console.no_urls", None])
def test_a_project_without_the_console_needs_nothing_of_it(
    settings: Any, scenes: list[dict[str, Any]], urls: str | None
) -> None:
    _apply(settings, {name: value for scene in scenes for name, value in scene.items()})
    _apply(settings, {"SESSION_COOKIE_SECURE": False, "ALLOWED_HOSTS": ["*"]})
    if urls:
        settings.ROOT_URLCONF = urls
    else:
        del settings.ROOT_URLCONF
    assert checks.the_console_is_whole() == []
    assert checks.the_console_is_guarded() == []
    assert checks.error_pages_tell_strangers_nothing() == []


def test_a_middleware_made_from_the_wanted_one_stands_for_it(settings: Any) -> None:
    own = f"{HERE}.OwnSessionMiddleware"
    settings.MIDDLEWARE = [own if name.endswith(".SessionMiddleware") else name for name in settings.MIDDLEWARE]
    assert own in settings.MIDDLEWARE
    assert said() == []


def test_a_record_in_another_database_than_the_models_is_told_with_the_router_that_mends_it(settings: Any) -> None:
    _apply(settings, {"DATABASE_ROUTERS": [f"{HERE}.EverythingElsewhere", f"{HERE}.NoTables"]})
    strays, tables = said()
    assert "the model Attempt leads to 'elsewhere'" in strays.msg
    assert "keep the tables of 'shiftboss' out of 'default'" in tables.msg
    for message in (strays, tables):
        assert "shiftboss.routers.RecordRouter" in message.hint
    settings.DATABASE_ROUTERS = ["shiftboss.routers.RecordRouter", *settings.DATABASE_ROUTERS]
    assert said() == []


@pytest.mark.requirement("R1")
def test_a_task_whose_resource_is_misspelt_is_named_with_the_resources_that_there_are(settings: Any) -> None:
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.core.misspelt"]
    [message] = said()
    assert message.id == "shiftboss.E009"
    assert message.msg == f"the task {MISSPELT}.take_film wants the resource 'browsr', which no module declares"
    assert "Declared are: 'browser'." in message.hint


def test_tasks_that_cannot_be_imported_are_told_and_hide_no_others(settings: Any) -> None:
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.runtime.broken", "tests.core.misspelt"]
    broken, misspelt = said()
    assert (broken.id, misspelt.id) == ("shiftboss.W008", "shiftboss.E009")
    assert broken.msg == (
        "tests.runtime.broken.tasks cannot be imported: RuntimeError: this module cannot be imported"
    )


@pytest.mark.requirement("R11")
def test_every_check_in_the_code_is_documented_and_tested_and_every_documented_one_is_in_the_code() -> None:
    code = {id for path in (ROOT / "shiftboss").rglob("*.py") for id in _ids(path)}
    assert code == {known.id for known in checks.KNOWN} == set(SCENES)
    assert code == set(_ids(ROOT / "docs" / "checks.md"))


def _ids(path: Path) -> list[str]:
    return re.findall(r"shiftboss\.[EW]\d{3}", path.read_text(encoding="utf-8"))
