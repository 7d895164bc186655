"""`manage.py shiftboss_worker --pool NAME`: become a worker of a pool."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError

ONLY_A_PROGRAM = (
    "shiftboss_worker takes the place of the process that it is started in, and closes its connections: start "
    "it as a program of its own. In a test, shiftboss.testing.run_jobs() runs jobs in the test's transaction"
)


class Command(BaseCommand):
    """Checks the database, then execs the keeper, which starts the executors."""

    help = (
        "Run a worker: claim jobs of the pool's queues and run their tasks. SIGTERM drains it (exit 0); a second "
        "one shortens the wait. Example: manage.py shiftboss_worker --pool default"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The pool's name."""
        parser.add_argument("--pool", default="default", help="a pool of SHIFTBOSS['POOLS'] (default: default)")

    def handle(self, *_: Any, pool: str, **__: Any) -> None:
        """Never returns, unless it refuses."""
        if not getattr(self, "_called_from_command_line", True):  # Django's own mark
            raise CommandError(ONLY_A_PROGRAM)
        from shiftboss.queue.launch import apply_settings, become, keeper_config, refuse_unready_database

        try:
            refuse_unready_database()
            config = keeper_config(pool)
            apply_settings()
        except (ShiftbossError, ConfigError, Error) as error:
            raise CommandError(str(error).strip()) from error
        become("shiftboss.queue.runtime", config)
