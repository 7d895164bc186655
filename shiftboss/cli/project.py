"""Which project, and which database, a command is about."""

import argparse
import os
import sys

import django

from shiftboss.cli.command import Refused
from shiftboss.supervisor_conf import installation
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


def anything_to_ask(given: argparse.Namespace) -> bool:
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
