"""Settings of the benchmark's own small project: defaults everywhere, the database from QBENCH_DSN."""

import os

from shiftboss import System
from shiftboss.compat import TASKS_APP
from shiftboss.site.settings import database

SECRET_KEY = "benchmark only"
USE_TZ = True
DATABASES = {"default": database(os.environ["QBENCH_DSN"])}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    *TASKS_APP,
    "shiftboss",
    "bench",
]
TASKS = {
    "default": {
        "BACKEND": "shiftboss.queue.backend.ShiftbossBackend",
        "QUEUES": [],
        "OPTIONS": {"authority": System()},
    }
}
SHIFTBOSS: dict[str, object] = {}
if threads := os.environ.get("BENCH_THREADS"):
    SHIFTBOSS["POOLS"] = {"default": {"threads": int(threads)}}
