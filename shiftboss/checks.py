"""System checks: a setup that cannot work, or that leaves a door open, is told at start with its fix.

`KNOWN` is all of them, with the text that `docs/checks.md` prints. Those tagged `deploy` run with
`manage.py check --deploy` only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from django.core import checks

from shiftboss import conf

TAG = "shiftboss"


@dataclass(frozen=True, slots=True)
class Known:
    """One check: when it speaks, and what to do then."""

    id: str
    when: str
    hint: str
    deploy: bool = False

    def says(self, text: str, *, facts: str = "") -> checks.CheckMessage:
        """The message of this check, of the level that its id names; `facts` are told with the hint."""
        kind = checks.Error if self.id.rpartition(".")[2].startswith("E") else checks.Warning
        hint = " ".join(filter(None, [self.hint, facts, "(docs/checks.md)"]))
        return kind(text, hint=hint, id=self.id)


SETTINGS = Known(
    "shiftboss.E001",
    "`SHIFTBOSS` has an unknown key or a value that cannot work, such as a lease shorter than three heartbeats",
    "The text names the key and the fix; every key is in docs/settings.md.",
)
DATABASE = Known(
    "shiftboss.E002",
    '`SHIFTBOSS["DATABASE"]` names an alias that is not in `DATABASES`, or one that is not PostgreSQL',
    'Set SHIFTBOSS["DATABASE"] to the alias of a PostgreSQL database.',
)
BACKEND = Known(
    "shiftboss.E003",
    "the backend's `OPTIONS` have an unknown key, or an `authority` that is neither `Owner` nor `System`",
    "Write OPTIONS = {'authority': shiftboss.System()} or give it with using(authority=…).",
)
MIDDLEWARE = Known(
    "shiftboss.E004",
    "the console is mounted without sessions, the CSRF guard or logins: nobody could log in, or a strange page "
    "could act in an operator's name",
    "Add them to MIDDLEWARE, in the order of the text.",
)
TEMPLATES = Known(
    "shiftboss.E005",
    "the console is mounted, but no template engine finds its pages",
    "Add an engine with BACKEND 'django.template.backends.django.DjangoTemplates' and APP_DIRS to TEMPLATES.",
)
READS = Known(
    "shiftboss.E006",
    'models of Shiftboss are read or written elsewhere than in `SHIFTBOSS["DATABASE"]`',
    "Put 'shiftboss.routers.RecordRouter' first in DATABASE_ROUTERS.",
)
MIGRATES = Known(
    "shiftboss.E007",
    'a router keeps Shiftboss\'s tables out of `SHIFTBOSS["DATABASE"]`, so that they are never made',
    "Put 'shiftboss.routers.RecordRouter' first in DATABASE_ROUTERS.",
)
AUTHORIZERS = Known(
    "shiftboss.E008",
    '`SHIFTBOSS["QUEUE_AUTHORIZER"]`, `["WATCH_AUTHORIZER"]`, `["STAFF_SCOPE"]`, `["SECRET_PROVIDER"]` or '
    '`["REDACTOR"]` leads to no function, or to a coroutine function: nobody is let through, no secret is given, '
    "and every text is hidden as a whole",
    "Name a plain function by its dotted path. An authorizer answers True or False, a scope System() or "
    "Scoped(…), a provider the value, a redactor the text that may be seen.",
)
RESOURCES = Known(
    "shiftboss.E009",
    "a task wants a `resource` that no module declares: each of its jobs would fail",
    "Correct the name, or declare it with shiftboss.Resource in a module that is imported with the tasks.",
)
NO_BACKEND = Known(
    "shiftboss.W001",
    "no entry of `TASKS` leads to Shiftboss: Django runs tasks at once, in the request",
    "Set TASKS['default']['BACKEND'] to 'shiftboss.queue.backend.ShiftbossBackend'.",
)
HTMX = Known(
    "shiftboss.W002",
    "the console is mounted without `django_htmx`: its pages do not refresh",
    "Add 'django_htmx' to INSTALLED_APPS.",
)
POLICY = Known(
    "shiftboss.W003",
    "the console is mounted without its content security policy",
    "Add 'shiftboss.console.middleware.ContentSecurityPolicyMiddleware' to MIDDLEWARE.",
)
DEBUG = Known(
    "shiftboss.W004",
    "the console is mounted, `DEBUG` is on and `ALLOWED_HOSTS` has `*`: whoever reaches the server can read "
    "settings and jobs' arguments on its error pages",
    "Turn DEBUG off, or name the hosts in ALLOWED_HOSTS.",
)
COOKIES = Known(
    "shiftboss.W005",
    "the console is mounted, and an operator's session or CSRF cookie also travels unencrypted",
    "Serve the console over https, and set SESSION_COOKIE_SECURE and CSRF_COOKIE_SECURE to True.",
    deploy=True,
)
HOSTS = Known(
    "shiftboss.W006",
    "the console is mounted and `ALLOWED_HOSTS` has `*`: a request chooses the host in the links and redirects "
    "of the answer",
    "Name the console's hosts in ALLOWED_HOSTS.",
    deploy=True,
)

OBSERVERS = Known(
    "shiftboss.W007",
    '`SHIFTBOSS["OBSERVERS"]` names something that cannot be imported, or has none of the methods of an observer',
    "Correct the dotted path; docs/observers.md has the methods. Jobs run all the same, and nobody is told.",
)
TASKS = Known(
    "shiftboss.W008",
    "the `tasks` of an installed app cannot be imported: workers end as soon as they are started",
    "Correct the module; the text says what it raises.",
)

CACHE = Known(
    "shiftboss.W009",
    "the console is mounted, and each process keeps the default cache for itself, or it keeps nothing: attempts "
    "to log in are limited in each process by itself, or not at all",
    "Give CACHES['default'] a backend that all processes share.",
    deploy=True,
)

KNOWN = (
    *(SETTINGS, DATABASE, BACKEND, MIDDLEWARE, TEMPLATES, READS, MIGRATES, AUTHORIZERS, RESOURCES),
    *(NO_BACKEND, HTMX, POLICY, DEBUG, COOKIES, HOSTS, OBSERVERS, TASKS, CACHE),
)

Found = list[checks.CheckMessage]


def register(function: Any) -> Any:
    """Register a check under the app's own tag."""
    return checks.register(function, TAG)


def _is_mounted() -> bool:
    """Whether the project's addresses lead to the console. A project of workers only may have none at all."""
    from django.conf import settings
    from django.urls import NoReverseMatch, reverse

    try:
        reverse("shiftboss:overview", urlconf=settings.ROOT_URLCONF)
    except (AttributeError, NoReverseMatch):
        return False
    return True


@register
def settings_are_sound(**_: Any) -> Found:
    """E001."""
    try:
        conf.get()
    except conf.ConfigError as problem:
        return [SETTINGS.says(str(problem))]
    return []


@register
def database_is_postgresql(**_: Any) -> Found:
    """E002."""
    from django.db import connections

    try:
        alias = conf.get().database
    except conf.ConfigError:
        return []
    if alias not in connections:
        return [DATABASE.says(f'SHIFTBOSS["DATABASE"] names {alias!r}, which is not in DATABASES')]
    if (vendor := connections[alias].vendor) != "postgresql":
        return [DATABASE.says(f"DATABASES[{alias!r}] is {vendor}; Shiftboss needs PostgreSQL 15 or newer")]
    return []


@register
def models_lead_to_the_record(**_: Any) -> Found:
    """E006 and E007."""
    from django.apps import apps
    from django.db import connections, router

    try:
        alias = conf.get().database
    except conf.ConfigError:
        return []
    if alias not in connections:
        return []
    models = list(apps.get_app_config("shiftboss").get_models())
    found: Found = []
    strays = {(m.__name__, to) for m in models for to in (router.db_for_read(m), router.db_for_write(m))}
    if strays := {(name, to) for name, to in strays if to != alias}:
        name, to = min(strays)
        found.append(READS.says(f'SHIFTBOSS["DATABASE"] is {alias!r}, but the model {name} leads to {to!r}'))
    if not all(router.allow_migrate_model(alias, model) for model in models):
        found.append(MIGRATES.says(f"DATABASE_ROUTERS keep the tables of 'shiftboss' out of {alias!r}"))
    return found


@register
def authorizers_can_be_asked(**_: Any) -> Found:
    """E008."""
    from inspect import iscoroutinefunction

    from shiftboss.queue.authorizers import imported

    try:
        config = conf.get()
    except conf.ConfigError:
        return []
    found: Found = []
    for key, path in (
        ("QUEUE_AUTHORIZER", config.queue_authorizer),
        ("WATCH_AUTHORIZER", config.watch_authorizer),
        ("STAFF_SCOPE", config.staff_scope),
        ("SECRET_PROVIDER", config.secret_provider),
        ("REDACTOR", config.redactor),
    ):
        if path is None:
            continue
        try:
            if iscoroutinefunction(imported(path)):
                found.append(AUTHORIZERS.says(f'SHIFTBOSS["{key}"]: {path!r} is a coroutine function'))
        except (Exception, SystemExit) as problem:  # an import runs the project's code
            found.append(AUTHORIZERS.says(f'SHIFTBOSS["{key}"]: {type(problem).__name__}: {problem}'))
    return found


@register
def observers_can_be_told(**_: Any) -> Found:
    """W007."""
    from shiftboss.queue.observers import imported

    try:
        paths = conf.get().observers
    except conf.ConfigError:
        return []
    found: Found = []
    for path in paths:
        try:
            imported(path)
        except (Exception, SystemExit) as problem:  # an import runs the project's code
            found.append(OBSERVERS.says(f'SHIFTBOSS["OBSERVERS"]: {path!r}: {type(problem).__name__}: {problem}'))
    return found


@register
def tasks_can_be_run(**_: Any) -> Found:
    """E009 and W008."""
    from shiftboss.queue import registry, resources
    from shiftboss.queue.errors import UnknownTask

    found = _import_tasks()
    declared = resources.declared()
    for name in sorted(registry.known()):
        try:
            wanted = getattr(registry.resolve(name), "resource", None)
        except UnknownTask:
            continue
        if wanted is not None and wanted not in declared:
            facts = f"Declared are: {', '.join(map(repr, declared))}." if declared else "None is declared."
            text = f"the task {name} wants the resource {wanted!r}, which no module declares"
            found.append(RESOURCES.says(text, facts=facts))
    return found


def _import_tasks() -> Found:
    """Import the `tasks` of the installed apps, as a worker does; W008 for each that cannot be."""
    from django.apps import apps
    from django.utils.module_loading import module_has_submodule

    found: Found = []
    for app in apps.get_app_configs():
        if not module_has_submodule(app.module, "tasks"):
            continue
        try:
            import_module(f"{app.name}.tasks")
        except (Exception, SystemExit) as problem:  # an import runs the project's code
            text = f"{app.name}.tasks cannot be imported: {type(problem).__name__}: {problem}"
            found.append(TASKS.says(text))
    return found


@register
def a_backend_is_ours(**_: Any) -> Found:
    """W001."""
    from shiftboss.compat import task_backends
    from shiftboss.queue.backend import ShiftbossBackend

    if any(isinstance(task_backends[alias], ShiftbossBackend) for alias in task_backends):
        return []
    text = "no entry of TASKS uses Shiftboss's backend: tasks are not stored, and may run at once in the request"
    return [NO_BACKEND.says(text)]


@register
def the_console_is_whole(**_: Any) -> Found:
    """E004, E005, W002 and W003."""
    from django.apps import apps
    from django.conf import settings
    from django.template import TemplateDoesNotExist
    from django.template.loader import get_template

    if not _is_mounted():
        return []
    found: Found = []
    if missing := _missing(NEEDED, settings.MIDDLEWARE):
        found.append(MIDDLEWARE.says(f"the console is mounted, but MIDDLEWARE lacks {', '.join(missing)}"))
    try:
        get_template("shiftboss/overview.html")
    except TemplateDoesNotExist:
        found.append(TEMPLATES.says("the console is mounted, but no engine of TEMPLATES finds its pages"))
    if not apps.is_installed("django_htmx"):
        text = "the console is mounted, but 'django_htmx' is not in INSTALLED_APPS: its pages do not refresh"
        found.append(HTMX.says(text))
    if _missing(["shiftboss.console.middleware.ContentSecurityPolicyMiddleware"], settings.MIDDLEWARE):
        found.append(POLICY.says("the console is mounted without its content security policy"))
    return found


NEEDED = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]


def _missing(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """Those of which neither they nor a class made from them is there."""
    from django.utils.module_loading import import_string

    def stands_for(name: str, other: str) -> bool:
        try:
            found, asked = import_string(other), import_string(name)
        except ImportError:  # the request will tell
            return False
        return isinstance(found, type) and issubclass(found, asked)

    return [name for name in wanted if name not in there and not any(stands_for(name, other) for other in there)]


@register
def error_pages_tell_strangers_nothing(**_: Any) -> Found:
    """W004."""
    from django.conf import settings

    if settings.DEBUG and "*" in settings.ALLOWED_HOSTS and _is_mounted():
        return [DEBUG.says("the console is mounted while DEBUG is on and ALLOWED_HOSTS has '*'")]
    return []


def the_console_is_guarded(**_: Any) -> Found:
    """W005, W006 and W009."""
    from django.conf import settings
    from django.core.cache import caches
    from django.core.cache.backends.dummy import DummyCache
    from django.core.cache.backends.locmem import LocMemCache

    if not _is_mounted():
        return []
    found: Found = []
    names = ["SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"]
    if settings.CSRF_USE_SESSIONS:
        names.pop()
    if off := [name for name in names if not getattr(settings, name)]:
        found.append(COOKIES.says(f"the console is mounted, and {' and '.join(off)} is not True"))
    if "*" in settings.ALLOWED_HOSTS:
        found.append(HOSTS.says("the console is mounted, and ALLOWED_HOSTS has '*'"))
    if isinstance(caches["default"], LocMemCache | DummyCache):
        kind = type(caches["default"]).__name__
        found.append(CACHE.says(f"the console is mounted, and attempts to log in are counted in a {kind}"))
    return found


checks.register(the_console_is_guarded, TAG, deploy=True)
