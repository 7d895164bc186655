"""The gate before a program: `python -P -m shiftboss.supervisor_conf.gate -- COMMAND…`.

supervisord starts programs in order, but waits for none of them. The gate waits until the database answers
and has its migrations, saying in the log why it waits, and then becomes the command.
"""

import os
import sys
import time

import django
from django.db import connections

from shiftboss import conf
from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import readiness

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
REMIND_SECONDS = 15.0


def wait_until_ready() -> None:
    """Return once the database can be worked with, however long that takes."""
    pause, told, told_at = FIRST_PAUSE_SECONDS, "", 0.0
    while True:
        try:
            readiness.check()
        except ShiftbossError as reason:
            if str(reason) != told or time.monotonic() > told_at + REMIND_SECONDS:
                told, told_at = str(reason), time.monotonic()
                print(f"gate: waiting: {reason}", file=sys.stderr, flush=True)
        else:
            return
        finally:
            connections[conf.get().database].close()
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def main() -> None:
    """Wait, then become the command after `--`."""
    if len(sys.argv) < 3 or sys.argv[1] != "--":
        sys.exit("usage: python -P -m shiftboss.supervisor_conf.gate -- COMMAND [WORD…]")
    django.setup()
    wait_until_ready()
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
