"""The command line: `shiftboss up`, `shiftboss status`, `shiftboss run`.

Exit codes: 0 fine, 1 refused or not found, 2 wrong usage.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

from shiftboss.cli import run, status, up
from shiftboss.cli.command import Commands, WrongUsage
from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError

EXAMPLES = """\
examples:
  shiftboss up                      make what is missing and run everything, until Ctrl-C
  shiftboss status                  what the queues hold and how the workers are
  shiftboss run reports.tasks.send --args '["2026-01"]'
                                    run one task here and now, without a server

Files are kept in .shiftboss/ in the current folder; SHIFTBOSS_HOME names another one.
Exit codes: 0 fine, 1 refused or not found, 2 wrong usage.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = _parser().parse_args(argv)
    try:
        code: int = given.command(given)
    except WrongUsage as problem:
        print(f"shiftboss: {problem}", file=sys.stderr)
        return 2
    except (ShiftbossError, ConfigError, ImproperlyConfigured) as problem:
        print(f"shiftboss: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:
        # Whoever read the output has gone (`| head`); the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shiftboss",
        description="Jobs in PostgreSQL.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = Commands(parser)
    for command in (up, status, run):
        command.declare(commands)
    return parser
