"""What every command shares: its options, its help and how it refuses."""

import argparse
from collections.abc import Callable

from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf.installation import BUNDLED


class Refused(ShiftbossError):
    """The command cannot do what was asked; the text says why."""


class WrongUsage(ShiftbossError):
    """The words of the command cannot be meant so; the text says what to give instead."""


class Commands:
    """Subcommands of a parser, each with examples in its help and the options that find a project."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(
        self, name: str, function: Callable[[argparse.Namespace], int], *, help: str, epilog: str
    ) -> argparse.ArgumentParser:
        """A command; `function` gets what was given and answers with the exit code."""
        made = self._parsers.add_parser(
            name,
            help=help,
            description=f"{help}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[_project_options()],
        )
        made.set_defaults(command=function)
        return made


def _project_options() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--settings",
        metavar="MODULE",
        help="settings module of your project (default: DJANGO_SETTINGS_MODULE, what `shiftboss up` used here, "
        f"or {BUNDLED})",
    )
    shared.add_argument("--pythonpath", metavar="FOLDER", help="folder to import your project from")
    return shared
