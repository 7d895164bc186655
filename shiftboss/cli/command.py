"""What every command shares: its options, its help and how it refuses."""

import argparse
from collections.abc import Callable
from typing import Any

from shiftboss.acts import LARGEST_ID
from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf.installation import BUNDLED


class Refused(ShiftbossError):
    """The command cannot do what was asked; the text says why."""


class WrongUsage(ShiftbossError):
    """The words of the command cannot be meant so; the text says what to give instead."""


class Commands:
    """Subcommands of a parser, each with examples in its help and the options that find a project."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers: Any = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(
        self, name: str, function: Callable[[argparse.Namespace], int], *, help: str, epilog: str
    ) -> argparse.ArgumentParser:
        """A command; `function` gets what was given and answers with the exit code."""
        made = self._parser(name, help=help, epilog=epilog, parents=[_project_options()])
        made.set_defaults(command=function)
        return made

    def group(self, name: str, *, help: str, epilog: str) -> "Commands":
        """A word that has commands of its own, such as `jobs`."""
        return Commands(self._parser(name, help=help, epilog=epilog))

    def _parser(self, name: str, *, help: str, epilog: str, **more: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = self._parsers.add_parser(
            name,
            help=help,
            description=f"{help}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **more,
        )
        return parser


def take_format(parser: argparse.ArgumentParser) -> None:
    """The option `--format`."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def take_person(parser: argparse.ArgumentParser) -> None:
    """The option `--as`."""
    parser.add_argument(
        "--as",
        dest="username",
        metavar="USERNAME",
        help="act as this user of Django's, with their permissions (default: you, to whom the database is open)",
    )


def take_reason(parser: argparse.ArgumentParser, *, needed: bool) -> None:
    """The option `--reason`."""
    parser.add_argument(
        "--reason", metavar="TEXT", default="", help="why, for the audit" + (" (needed)" if needed else "")
    )


def take_consent(parser: argparse.ArgumentParser) -> None:
    """The option `--yes`."""
    parser.add_argument("--yes", action="store_true", help="do not ask first; needed where nobody can be asked")


def take_page(parser: argparse.ArgumentParser, *, limit: int) -> None:
    """The options `--limit` and `--before`."""
    parser.add_argument(
        "--limit", type=count_from_1, metavar="N", default=limit, help=f"how many at most (default: {limit})"
    )
    parser.add_argument(
        "--before", type=identity, metavar="ID", help="only those with a smaller id: the next page"
    )


def identity(text: str) -> int:
    """The number of a job or of an entry, as an option's type."""
    if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 19 or int(text) > LARGEST_ID:
        raise argparse.ArgumentTypeError(f"{text!r} is not an id: give a whole number")
    return int(text)


def count_from_1(text: str) -> int:
    """How many, as an option's type."""
    if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 4 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 9999")
    return int(text)


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
