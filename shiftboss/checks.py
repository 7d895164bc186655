"""System checks: a bad setting is told at start, with its name and the fix. Ids are shiftboss.E001…"""

from typing import Any

from django.core import checks

from shiftboss import conf


@checks.register("shiftboss")
def settings_are_sound(**_: Any) -> list[checks.CheckMessage]:
    """E001: `settings.SHIFTBOSS` has an unknown key or an impossible value."""
    try:
        conf.get()
    except conf.ConfigError as problem:
        return [checks.Error(str(problem), hint="See docs/settings.md for every key.", id="shiftboss.E001")]
    return []


@checks.register("shiftboss")
def database_is_postgresql(**_: Any) -> list[checks.CheckMessage]:
    """E002: the database alias is unknown or not PostgreSQL."""
    from django.db import connections

    try:
        alias = conf.get().database
    except conf.ConfigError:
        return []
    if alias not in connections:
        text = f'SHIFTBOSS["DATABASE"] names {alias!r}, which is not in DATABASES'
    elif connections[alias].vendor != "postgresql":
        text = f"DATABASES[{alias!r}] is {connections[alias].vendor}; Shiftboss needs PostgreSQL 15 or newer"
    else:
        return []
    hint = "Set SHIFTBOSS['DATABASE'] to the alias of a PostgreSQL database."
    return [checks.Error(text, hint=hint, id="shiftboss.E002")]


@checks.register("shiftboss")
def a_backend_is_ours(**_: Any) -> list[checks.CheckMessage]:
    """W001: no entry of TASKS leads to Shiftboss, so that Django runs tasks at once, in the request."""
    from shiftboss.compat import task_backends
    from shiftboss.queue.backend import ShiftbossBackend

    if any(isinstance(task_backends[alias], ShiftbossBackend) for alias in task_backends):
        return []
    hint = (
        "TASKS = {'default': {'BACKEND': 'shiftboss.queue.backend.ShiftbossBackend', 'QUEUES': [], "
        "'OPTIONS': {'authority': shiftboss.System()}}}"
    )
    text = "no entry of TASKS uses Shiftboss's backend: tasks are not stored, and may run at once in the request"
    return [checks.Warning(text, hint=hint, id="shiftboss.W001")]


@checks.register("shiftboss")
def the_console_is_whole(**_: Any) -> list[checks.CheckMessage]:
    """W002 and W003: the console is mounted without django_htmx, or without its content security policy."""
    from django.apps import apps
    from django.conf import settings
    from django.urls import NoReverseMatch, reverse

    try:
        reverse("shiftboss:overview", urlconf=settings.ROOT_URLCONF)
    except (AttributeError, NoReverseMatch):  # a project of workers only may have no URLs at all
        return []
    found: list[checks.CheckMessage] = []
    if not apps.is_installed("django_htmx"):
        text = "the console is mounted, but 'django_htmx' is not in INSTALLED_APPS: its pages do not refresh"
        found.append(checks.Warning(text, hint="Add 'django_htmx' to INSTALLED_APPS.", id="shiftboss.W002"))
    policy = "shiftboss.console.middleware.ContentSecurityPolicyMiddleware"
    if policy not in settings.MIDDLEWARE:
        text = "the console is mounted without its content security policy"
        found.append(checks.Warning(text, hint=f"Add {policy!r} to MIDDLEWARE.", id="shiftboss.W003"))
    return found
