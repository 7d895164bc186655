"""`manage.py shiftboss_listener`: the agent of this host."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError


class Command(BaseCommand):
    """Runs in the foreground, as a program of the supervisord that it looks at."""

    # They load all that the project's pages need, and this one stays for long.
    requires_system_checks: list[str] = []
    help = "Tell the record which programs run on this host under supervisord, and how they ended."

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """With examples as they are written."""
        from shiftboss.management.listener import EXAMPLES

        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, epilog=EXAMPLES, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which home, and which supervisord."""
        from shiftboss.management.listener import declare

        declare(parser)

    def handle(
        self, *_: Any, home: Path | None, socket: Path | None, prefix: str, events: bool, **__: Any
    ) -> None:
        """Until a signal comes."""
        from shiftboss.management.listener import listen

        try:
            listen(home, socket, prefix, takes_events=events)
        except (ShiftbossError, ConfigError, Error) as error:
            raise CommandError(str(error).strip()) from error
