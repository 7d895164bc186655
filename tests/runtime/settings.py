"""What workers under test run with: the tests' settings, this app, and SHIFTBOSS from the environment."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, *os.environ.get("TEST_APPS", "tests.runtime").split(",")]
SHIFTBOSS = json.loads(os.environ.get("TEST_SHIFTBOSS", "{}"))
