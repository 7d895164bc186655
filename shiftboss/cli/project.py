"""Which project, and which database, a command is about."""

import argparse
import os
import sys

import django

from shiftboss.cli.command import Refused
from shiftboss.queue.store.schema import check_schema
from shiftboss.queue.store.statement import run as answer
from shiftboss.supervisor_conf import installation, readiness
from shiftboss.supervisor_conf.installation import BUNDLED, Installation
from shiftboss.supervisor_conf.places import CODE


def set_up(given: argparse.Namespace) -> None:
    """Set up Django with the settings asked for, else those of the installation in the home."""
    home = installation.home_folder()
    noted = installation.load(home)
    path = path_of(given)
    if noted:
        _default("DJANGO_SETTINGS_MODULE", noted.settings)
        _default("SHIFTBOSS_SECRET_KEY", installation.secret_key(home))
        if noted.database_url:
            _default("DATABASE_URL", noted.database_url)
        path += noted.path
    if given.settings:
        os.environ["DJANGO_SETTINGS_MODULE"] = given.settings
    _default("DJANGO_SETTINGS_MODULE", BUNDLED)
    sys.path[:0] = [entry for entry in path if entry not in sys.path]
    _django()


def open_record(given: argparse.Namespace) -> None:
    """Set up Django, and make sure that a record is there that can be asked. Raises Refused, ShiftbossError."""
    if not _anything_to_ask(given):
        home = installation.home_folder()
        raise Refused(
            f"there is no installation in {home}: run `shiftboss up` here, go to the folder where it runs, name "
            "its home with SHIFTBOSS_HOME, or name your project with --settings and --pythonpath"
        )
    set_up(given)
    readiness.check_server()
    answer(check_schema())


def _anything_to_ask(given: argparse.Namespace) -> bool:
    """Whether anything names a database: settings, an address, or the note of an installation."""
    named = given.settings or os.environ.get("DJANGO_SETTINGS_MODULE") or os.environ.get("DATABASE_URL")
    return bool(named) or installation.load(installation.home_folder()) is not None


def activate(wanted: Installation) -> None:
    """Make this process see an installation's project, and set up Django."""
    wanted.activate()
    _django()


def _default(name: str, text: str) -> None:
    """Set a variable of the environment where it is not set, or empty."""
    os.environ[name] = os.environ.get(name) or text


def _django() -> None:
    """`django.setup()`, with a settings module that cannot be imported as a clear error."""
    name = os.environ["DJANGO_SETTINGS_MODULE"]
    try:
        django.setup()
    except ModuleNotFoundError as error:
        raise Refused(
            f"the settings module {name!r} cannot be loaded ({error}): give the folder of your project "
            "with --pythonpath, and the right module with --settings"
        ) from None


def path_of(given: argparse.Namespace) -> tuple[str, ...]:
    """The folders to import from, absolute: `--pythonpath`, the PYTHONPATH that we were started with."""
    folders = [given.pythonpath] if given.pythonpath else []
    folders += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return tuple(dict.fromkeys([*map(os.path.abspath, folders), str(CODE)]))
