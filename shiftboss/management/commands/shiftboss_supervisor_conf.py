"""`manage.py shiftboss_supervisor_conf`: the configuration of a supervisor, from the settings."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError


class Command(BaseCommand):
    """Needs no database: it reads the settings and the host."""

    help = "Write what supervisord, or systemd, needs to keep the workers of SHIFTBOSS['POOLS'] alive."

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """With examples as they are written."""
        from shiftboss.management.supervisor import EXAMPLES

        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, epilog=EXAMPLES, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to write, and where."""
        from shiftboss.management.supervisor import declare

        declare(parser)

    def handle(self, *_: Any, **given: Any) -> None:
        """Exit code 1 where it is refused, and where `--check` finds a difference."""
        from shiftboss.management.supervisor import answer

        try:
            said = answer(given)
        except (ShiftbossError, ConfigError) as error:
            raise CommandError(str(error)) from error
        for remark in said.remarks:
            self.stderr.write(remark)
        if said.text:
            self.stdout.write(said.text, ending="" if said.text.endswith("\n") else "\n")
        if said.code:
            raise SystemExit(said.code)
