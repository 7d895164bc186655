"""`manage.py shiftboss_tokens`: make, list and revoke API tokens."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from shiftboss.conf import ConfigError
from shiftboss.queue.errors import ShiftbossError


class Command(BaseCommand):
    """Whoever may run it holds the database's password, so everything is permitted; the audit names them."""

    help = "Make, list and revoke tokens of the HTTP API."

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """With examples as they are written."""
        from shiftboss.management.tokens import EXAMPLES

        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, epilog=EXAMPLES, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do."""
        from shiftboss.management.tokens import declare

        declare(parser)

    def handle(self, *_: Any, what: str, **given: Any) -> None:
        """Exit code 1 where it is refused."""
        from shiftboss.management.tokens import answer

        try:
            self.stdout.write(answer(what, given))
        except (ShiftbossError, ConfigError, Error) as error:
            raise CommandError(str(error).strip()) from error
