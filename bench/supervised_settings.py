"""What `shiftboss up` runs for the benchmark of supervision: the bundled project with handlers that take long."""

from shiftboss.site.settings import *  # noqa: F403
from shiftboss.site.settings import INSTALLED_APPS as THEIRS

INSTALLED_APPS = [*THEIRS, "tests.runtime"]
