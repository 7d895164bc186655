"""A project that mounts the console below a prefix."""

from shiftboss.site.settings import *  # noqa: F403

ROOT_URLCONF = "tests.console.prefixed_urls"
