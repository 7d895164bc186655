"""A project of somebody's own: its database, its addresses, and no whitenoise."""

from shiftboss.site.settings import *  # noqa: F403
from shiftboss.site.settings import MIDDLEWARE

SECRET_KEY = "only for tests"
DATABASES = {
    "default": {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "HOST": "127.0.0.1", "PORT": "9"}
}
MIDDLEWARE = [name for name in MIDDLEWARE if "whitenoise" not in name]
ROOT_URLCONF = "tests.console.prefixed_urls"
WSGI_APPLICATION = None
