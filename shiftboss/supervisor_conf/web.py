"""The WSGI application that `shiftboss up` serves: the project's own, and the static files of its apps.

Most projects leave static files to the server before them. `up` has no such server, and a console without its
style sheet is of little use.
"""

import os
from collections.abc import Callable
from inspect import isclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import UserSettingsHolder, settings
from django.core.wsgi import get_wsgi_application
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string
from whitenoise import WhiteNoise
from whitenoise.middleware import WhiteNoiseMiddleware

from shiftboss.queue.errors import ShiftbossError

Application = Callable[..., Any]


class UrlsBroken(ShiftbossError):
    """The project's URLs cannot be loaded; the text names the module and its error."""


def console_path() -> str | None:
    """Where the project's URLs have the console; None where they do not include it. Raises UrlsBroken."""
    try:
        return reverse("shiftboss:overview")
    except NoReverseMatch:
        return None
    except Exception as error:
        # Loading them imports the project's views, which can fail in any way.
        named = f"the project's URLs in {settings.ROOT_URLCONF} cannot be loaded"
        raise UrlsBroken(f"{named}: {type(error).__name__}: {error}") from error


def application() -> Application:
    """The project's application; in whitenoise where the project leaves its static files to others."""
    named = getattr(settings, "WSGI_APPLICATION", None)
    inner: Application = import_string(named) if named else get_wsgi_application()
    if _is_elsewhere(settings.STATIC_URL) or any(map(_serves_files, settings.MIDDLEWARE)):
        return inner
    return _StaticFiles(inner)


class _StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """whitenoise as the middleware reads it from the settings, but around an application, and with all finders."""

    __call__ = WhiteNoise.__call__
    serve = staticmethod(WhiteNoise.serve)

    def __init__(self, inner: Application) -> None:
        with_finders = UserSettingsHolder(settings)
        with_finders.WHITENOISE_USE_FINDERS = True
        if not os.path.isdir(settings.STATIC_ROOT or ""):
            with_finders.STATIC_ROOT = None  # nothing is collected yet
        super().__init__(None, with_finders)
        self.application = inner


def _is_elsewhere(url: str | None) -> bool:
    return not url or bool(urlsplit(url).netloc)


def _serves_files(middleware: str) -> bool:
    found = import_string(middleware)
    return isclass(found) and issubclass(found, WhiteNoiseMiddleware)
