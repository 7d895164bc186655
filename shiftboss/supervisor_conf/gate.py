"""The gate before a program: `python -P -m shiftboss.supervisor_conf.gate [--env-file FILE] -- COMMAND…`.

supervisord starts programs in order, but waits for none of them. The gate waits until the database answers
and has its migrations, saying in the log why it waits, and then becomes the command. What a file says of the
environment is in force before that: so secrets need to stand neither in a configuration nor in a command line.
"""

import os
import sys
import time
from pathlib import Path

import django
from django.db import connections

from shiftboss import conf
from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import env_file, readiness

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


USAGE = "usage: python -P -m shiftboss.supervisor_conf.gate [--env-file FILE] -- COMMAND [WORD…]"


def main() -> None:
    """Wait, then become the command after `--`."""
    words = sys.argv[1:]
    if words[:1] == ["--env-file"]:
        try:
            os.environ.update(env_file.read(Path(words[1])))
        except (IndexError, env_file.EnvFileError) as problem:
            sys.exit(f"gate: {problem if words[1:] else USAGE}")
        words = words[2:]
    if len(words) < 2 or words[0] != "--":
        sys.exit(USAGE)
    django.setup()
    wait_until_ready()
    os.execvp(words[1], words[1:])


if __name__ == "__main__":
    main()
