"""The command line, `shiftboss COMMAND`: one module for each command."""

import argparse
import os
import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.db import DataError, InterfaceError, OperationalError

from shiftboss.cli import audit, backfills, deploy, jobs, programs, purge, queues, rolls, run, status, up, workers
from shiftboss.cli.bulk import INTERRUPTED
from shiftboss.cli.command import Commands, WrongUsage
from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError

EXAMPLES = """\
examples:
  shiftboss up                      make what is missing and run everything, until Ctrl-C
  shiftboss status                  what the queues hold and how the workers are
  shiftboss jobs list --state quarantined
                                    what waits for a person
  shiftboss queues pause mail --reason "mail server is down"
  shiftboss run reports.tasks.send --args '["2026-01"]'
                                    run one task here and now, without a server

Each command has examples of its own: shiftboss COMMAND --help.
Files are kept in .shiftboss/ in the current folder; SHIFTBOSS_HOME names another one.
Exit codes: 0 fine, 1 refused or not found, 2 wrong usage, 130 ended by Ctrl-C.
"""

COMMANDS = (up, status, jobs, queues, workers, programs, rolls, deploy, backfills, audit, purge, run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = parser().parse_args(argv)
    try:
        code: int = given.command(given)
        sys.stdout.flush()
    except WrongUsage as problem:
        return _complain(problem, 2)
    except (ShiftbossError, ConfigError, ImproperlyConfigured) as problem:
        return _complain(problem, 1)
    except DataError as problem:
        return _complain(f"that is no text that PostgreSQL can hold: {problem}", 2)
    except (OperationalError, InterfaceError) as problem:
        return _complain(f"the database broke off, so look what was done before you try again: {problem}", 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone (`| head`); the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    made = argparse.ArgumentParser(
        prog="shiftboss",
        description="Jobs in PostgreSQL.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = Commands(made)
    for command in COMMANDS:
        command.declare(commands)
    return made


def _complain(problem: object, code: int) -> int:
    print(f"shiftboss: {problem}", file=sys.stderr)
    return code
