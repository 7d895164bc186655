"""Settings of the bundled project: what `shiftboss up` runs when there is no project yet.

Everything that differs between installations comes from the environment:
`DATABASE_URL`, `SHIFTBOSS_SECRET_KEY`, `SHIFTBOSS_ALLOWED_HOSTS` and `SHIFTBOSS_DEBUG`.
"""

import os
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from shiftboss import System
from shiftboss.compat import TASKS_APP


def database(url: str) -> dict[str, object]:
    """Django's settings for a `postgresql://user:password@host:port/name?option=…` address.

    A `host` option in the query names a socket folder. Raises ImproperlyConfigured for other schemes.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(
            f"DATABASE_URL must begin with postgresql://, not {parts.scheme or url[:12]!r}:// "
            "(Shiftboss needs PostgreSQL 15 or newer)"
        )
    options: dict[str, object] = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or unquote(parts.hostname or "")
    port = options.pop("port", None) or parts.port or ""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or "") or options.pop("user", ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(port),
        "OPTIONS": options,
        "CONN_HEALTH_CHECKS": True,
    }


DATABASES = {"default": database(os.environ.get("DATABASE_URL") or "postgresql:///shiftboss")}
if pool_size := int(os.environ.get("SHIFTBOSS_WEB_POOL", "0")):
    DATABASES["default"]["OPTIONS"] |= {"pool": {"min_size": 1, "max_size": pool_size, "timeout": 5}}  # type: ignore[operator]

SECRET_KEY = os.environ.get("SHIFTBOSS_SECRET_KEY", "")
DEBUG = os.environ.get("SHIFTBOSS_DEBUG", "") == "1"
ALLOWED_HOSTS = os.environ.get("SHIFTBOSS_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    *TASKS_APP,
    "shiftboss",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "shiftboss.console.middleware.ContentSecurityPolicyMiddleware",
]
ROOT_URLCONF = "shiftboss.site.urls"
WSGI_APPLICATION = "shiftboss.site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ]
        },
    }
]
LOGIN_URL = "shiftboss:login"
LOGIN_REDIRECT_URL = "shiftboss:overview"
LOGOUT_REDIRECT_URL = "shiftboss:login"
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True

TASKS = {
    "default": {
        "BACKEND": "shiftboss.queue.backend.ShiftbossBackend",
        "QUEUES": [],
        "OPTIONS": {"authority": System()},
    }
}
SHIFTBOSS: dict[str, object] = {}
