"""A project whose database is not PostgreSQL."""

from shiftboss.site.settings import *  # noqa: F403

SECRET_KEY = "only for tests"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
