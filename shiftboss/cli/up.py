"""`shiftboss up`: make what is missing and run everything."""

import argparse
import os
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from shiftboss import conf
from shiftboss.cli.command import Commands, Refused
from shiftboss.cli.project import activate, path_of
from shiftboss.supervisor_conf import (
    foreground,
    incarnations,
    installation,
    places,
    prepare,
    programs,
    render,
    web,
)
from shiftboss.supervisor_conf.installation import BUNDLED, Installation
from shiftboss.supervisor_conf.postgres import Postgres
from shiftboss.supervisor_conf.prepare import OPERATOR, PASSWORD_FILE

HOST = "127.0.0.1"
FIRST_PORT = 8300

EXAMPLES = """\
examples:
  shiftboss up
  shiftboss up --port 9000
  shiftboss up --settings mysite.settings --pythonpath .
  DATABASE_URL=postgresql://me@db.example/jobs shiftboss up

Without DATABASE_URL an embedded PostgreSQL is made and started. The console's address and login are printed;
the password of the first operator stays in .shiftboss/admin-password. Logs are in .shiftboss/log/.
"""


def declare(commands: Commands) -> None:
    """Add the command."""
    starting = commands.add(
        "up", up, help="Prepare what is missing and run everything until Ctrl-C", epilog=EXAMPLES
    )
    starting.add_argument(
        "--port",
        type=_port_number,
        help=f"the console's port (default: PORT, or the first free one from {FIRST_PORT} on)",
    )
    starting.add_argument(
        "--first",
        metavar="COMMAND",
        default="",
        help="management command, with its arguments, to run once when the database is ready",
    )


def up(given: argparse.Namespace) -> int:
    """Prepare the installation and keep its programs running in the foreground."""
    home = installation.home_folder()
    places.make_home(home)
    with foreground.alone(home):
        places.private_folder(home / "log")
        wanted = _installation(given, home, _port(given))
        wanted = replace(wanted, console=web.console_path(), first_command=given.first)
        programs.refuse_foreign_users(conf.get(), wanted)
        password = prepare.prepare(wanted, say=_say)
        wanted.save()
        found = programs.programs(conf.get(), wanted)
        text = render.render(wanted, found)
        incarnations.make_folders(home, found)
        _greet(wanted, password)
        return foreground.run(wanted, text, say=_say)


def _say(text: str) -> None:
    """Print a line; a terminal that is gone must not keep us from stopping in order."""
    with suppress(OSError):
        print(text, flush=True)


def _greet(wanted: Installation, password: str | None) -> None:
    where = f'not mounted: add path("shiftboss/", include("shiftboss.urls")) to {settings.ROOT_URLCONF}'
    _say(f"Console:  {wanted.address if wanted.console else where}")
    kept = wanted.home / PASSWORD_FILE
    if password:
        _say(f"Login:    {OPERATOR}   password: {password}   (shown once; kept in {kept})")
    elif kept.exists():
        _say(f"Login:    {OPERATOR}   password: in {kept}")
    _say("Starting the programs …")


def _installation(given: argparse.Namespace, home: Path, port: int) -> Installation:
    """What `up` is to run. Sets up Django, and finds out whether the embedded database is wanted."""
    url = os.environ.get("DATABASE_URL")
    postgres = None if url else Postgres.of(home)
    wanted = Installation(
        home=home,
        settings=given.settings or os.environ.get("DJANGO_SETTINGS_MODULE") or BUNDLED,
        path=path_of(given),
        database_url=url or (postgres.url() if postgres else None),
        embedded=postgres is not None,
        host=HOST,
        port=port,
    )
    activate(wanted)
    if postgres is None or _leads_to(connections[conf.get().database].settings_dict, postgres.sockets):
        return wanted
    # The settings name a database of their own and do not read DATABASE_URL.
    del os.environ["DATABASE_URL"]
    return replace(wanted, database_url=None, embedded=False)


def _leads_to(settings: dict[str, Any], sockets: Path) -> bool:
    return str(settings["HOST"]) == str(sockets)


def _port_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 1 to 65535")
    return int(text)


def _port(given: argparse.Namespace) -> int:
    """The port asked for, which has to be free, else the next free one."""
    asked = given.port
    if asked is None and (text := os.environ.get("PORT")):
        try:
            asked = _port_number(text)
        except argparse.ArgumentTypeError as problem:
            raise Refused(f"PORT: {problem}") from None
    if asked is not None:
        if not _is_free(asked):
            raise Refused(f"port {asked} is taken: stop what uses it, or ask for another one")
        return int(asked)
    for port in range(FIRST_PORT, FIRST_PORT + 200):
        if _is_free(port):
            return port
    raise Refused(f"no free port from {FIRST_PORT} to {FIRST_PORT + 199}: give one with --port")


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except PermissionError:
            raise Refused(f"port {port} needs privileges: ask for one above 1023") from None
        except OSError:
            return False
    return True
