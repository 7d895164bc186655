"""A module whose import waits for a file: as slow as a test wants."""

import os
import time
from pathlib import Path

from shiftboss import task
from tests.logbook import write

if "TEST_LOG" in os.environ:
    Path(os.environ["TEST_LOG"], "importing").touch()
while "TEST_LOG" in os.environ and not Path(os.environ["TEST_LOG"], "go").exists():
    time.sleep(0.02)


@task
def late(name: str) -> None:
    """Be run after all."""
    write("ran", name)
