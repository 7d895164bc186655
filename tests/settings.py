"""The bundled project, made quick and plain for tests."""

from shiftboss.site.settings import *  # noqa: F403
from shiftboss.site.settings import DATABASES

SECRET_KEY = "only for tests"
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
DATABASES["default"]["TEST"] = {"NAME": "test_shiftboss"}
