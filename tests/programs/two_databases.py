"""A project whose record is in a second database."""

from shiftboss.site.settings import *  # noqa: F403
from shiftboss.site.settings import DATABASES

SECRET_KEY = "only for tests"
DATABASES = {
    "default": DATABASES["default"] | {"NAME": "shiftboss_shop"},
    "record": DATABASES["default"] | {"NAME": "shiftboss_record"},
}
DATABASE_ROUTERS = ["shiftboss.routers.RecordRouter"]
SHIFTBOSS = {"DATABASE": "record"}
