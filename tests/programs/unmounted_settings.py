"""A project whose addresses, which are here too, do not include the console."""

from shiftboss.site.settings import *  # noqa: F403

ROOT_URLCONF = "tests.programs.unmounted_settings"

urlpatterns: list[object] = []
