"""`manage.py shiftboss_roles`: the roles as groups."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from shiftboss.queue.errors import ShiftbossError


class Command(BaseCommand):
    """Makes or updates the groups and prints what changed."""

    help = "Make the groups Shiftboss viewer, operator and admin, or give them what these roles permit now."

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """With examples as they are written."""
        from shiftboss.management.roles import EXAMPLES

        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, epilog=EXAMPLES, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How to print."""
        parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")

    def handle(self, *_: Any, format: str, **__: Any) -> None:
        """Exit code 1 where the permissions do not exist yet."""
        from shiftboss.management.roles import answer

        try:
            self.stdout.write(answer(as_json=format == "json"))
        except (ShiftbossError, Error) as error:
            raise CommandError(str(error).strip()) from error
