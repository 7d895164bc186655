"""`manage.py shiftboss_maintainer`: become the maintainer."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError

ONLY_A_PROGRAM = (
    "shiftboss_maintainer takes the place of the process that it is started in, and closes its connections: start "
    "it as a program of its own. In a test, shiftboss.testing.run_jobs() runs jobs in the test's transaction"
)


class Command(BaseCommand):
    """Checks the database, then execs the maintainer."""

    help = (
        "Run the upkeep: make due jobs available, reap expired leases, make partitions ahead. One is enough; more "
        "do no harm. Example: manage.py shiftboss_maintainer"
    )

    def handle(self, *_: Any, **__: Any) -> None:
        """Never returns, unless it refuses."""
        if not getattr(self, "_called_from_command_line", True):  # Django's own mark
            raise CommandError(ONLY_A_PROGRAM)
        from shiftboss.queue.launch import apply_settings, become, maintainer_config, refuse_unready_database

        try:
            refuse_unready_database()
            config = maintainer_config()
            apply_settings()
        except (ShiftbossError, ConfigError, Error) as error:
            raise CommandError(str(error).strip()) from error
        become("shiftboss.queue.maintainer", config)
