"""What `manage.py shiftboss_supervisor_conf` says and writes."""

import os
import pwd
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiftboss import conf
from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import comparison, installation, programs, render, systemd
from shiftboss.supervisor_conf.foreground import CONFIGURATION
from shiftboss.supervisor_conf.installation import write_whole
from shiftboss.supervisor_conf.written import Written

PREFIX = "shiftboss-"

EXAMPLES = """\
examples:
  manage.py shiftboss_supervisor_conf
  manage.py shiftboss_supervisor_conf --home /srv/shiftboss --output /srv/shiftboss/supervisord.conf
  manage.py shiftboss_supervisor_conf --include --home /srv/shiftboss --env-file /etc/shiftboss.env \\
      --socket /run/supervisor.sock --output /etc/supervisor/conf.d/shiftboss.conf
  manage.py shiftboss_supervisor_conf --format systemd --user app --env-file /etc/shiftboss.env \\
      --output /etc/systemd/system
  manage.py shiftboss_supervisor_conf --check

Without --output it is printed. --check writes nothing: it prints what would change, as a unified diff, in the file
of --output (or in HOME/supervisord.conf), and in the programs that the supervisord of the home runs.
Where `shiftboss up` runs in the home, the configuration is that of `shiftboss up`.
Exit codes: 0 written, or as it should be; 1 refused, or --check has found a difference; 2 wrong usage.
"""


class NotWritten(ShiftbossError):
    """The configuration cannot be written, or the options do not go together; the text says what would do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to print, what to say beside it, and the exit code."""

    text: str
    remarks: list[str] = field(default_factory=list)
    code: int = 0


def declare(parser: ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--format", choices=("supervisord", "systemd"), default="supervisord", help="default: supervisord"
    )
    parser.add_argument(
        "--include",
        action="store_true",
        help="sections for the [include] of a supervisord that you have: programs only, absolute paths",
    )
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help="file (with systemd: folder) to write to, instead of printing"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print the differences, exit code 1 where there are any",
    )
    parser.add_argument(
        "--home",
        type=Path,
        metavar="FOLDER",
        help="folder of the logs and of supervisord's socket (default: SHIFTBOSS_HOME, or .shiftboss)",
    )
    parser.add_argument(
        "--web",
        type=_address,
        metavar="HOST:PORT",
        help="serve the console there (default: you serve it yourself)",
    )
    parser.add_argument(
        "--prefix",
        type=_prefix,
        metavar="TEXT",
        help=f"what the names begin with, with --include or systemd (default: {PREFIX})",
    )
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="with --include: the socket of your supervisord, so that the agent of the host runs too",
    )
    parser.add_argument(
        "--user",
        metavar="NAME",
        help="systemd: user of the programs whose pool names none (default: you, unless you are root)",
    )
    parser.add_argument(
        "--env-file",
        type=Path,
        metavar="FILE",
        help="file of NAME=text lines that the programs read when they start: the place for secrets",
    )


def answer(given: Mapping[str, Any]) -> Answer:
    """Make the configuration, and print, write or compare it. Raises ShiftbossError, ConfigError."""
    _refuse_contradictions(given)
    home = (given["home"] or installation.home_folder()).absolute()
    by = _by(given, home)
    if given["format"] == "systemd":
        return _of_systemd(given, by)
    noted = None if by.include else installation.load(home)
    if noted and (by.web or by.env_file):
        raise NotWritten(
            f"`shiftboss up` runs in {home}, and takes neither --web nor --env-file: leave them out, or give "
            "another --home"
        )
    found = programs.programs(conf.get(), noted) if noted else by.programs(conf.get())
    text = render.render(noted, found) if noted else by.text(found)
    remarks = [f"as `shiftboss up` runs it in {home}"] if noted else []
    output = given["output"] and given["output"].absolute()
    if given["check"]:
        different = comparison.of_files({output or home / CONFIGURATION: text})
        if not by.include:
            different += comparison.of_running(render.socket_path(home), [program.name for program in found])
        return Answer(different, remarks, 1 if different else 0)
    if output is None:
        return Answer(text, remarks)
    if noted:
        raise NotWritten(f"`shiftboss up` writes {home / CONFIGURATION} itself at each start: leave --output out")
    try:
        by.write(output, found)
    except OSError as problem:
        raise NotWritten(f"{output} cannot be written: {problem.strerror}") from None
    return Answer(f"written: {output}", remarks)


def _by(given: Mapping[str, Any], home: Path) -> Written:
    prefix = PREFIX if given["prefix"] is None else given["prefix"]
    return Written(
        home=home,
        include=given["include"],
        prefix=prefix if given["include"] else "",
        socket=given["socket"] and given["socket"].absolute(),
        web=given["web"],
        env_file=given["env_file"] and given["env_file"].absolute(),
    )


def _of_systemd(given: Mapping[str, Any], by: Written) -> Answer:
    prefix = PREFIX if given["prefix"] is None else given["prefix"]
    wanted = by.installation
    found = programs.programs(conf.get(), wanted, web=by.web is not None, listener=None)
    made = systemd.units(wanted, found, prefix=prefix, user=_user(given["user"]), env_file=by.env_file)
    if given["output"] is None:
        return Answer("\n".join(f"# --- {name}\n{text}" for name, text in made.items()))
    files = {given["output"].absolute() / name: text for name, text in made.items()}
    if given["check"]:
        different = comparison.of_files(files)
        return Answer(different, code=1 if different else 0)
    try:
        for file, text in files.items():
            # systemd tells everybody what is in a unit, and complains of one that not everybody may read.
            write_whole(file, text, mode=0o644)
    except OSError as problem:
        raise NotWritten(f"{given['output'].absolute()} cannot be written: {problem.strerror}") from None
    return Answer("\n".join(f"written: {file}" for file in files))


def _refuse_contradictions(given: Mapping[str, Any]) -> None:
    systemd_wanted = given["format"] == "systemd"
    if given["include"] and systemd_wanted:
        raise NotWritten("--include is for supervisord: leave it out, or leave out --format systemd")
    if given["prefix"] is not None and not (systemd_wanted or given["include"]):
        raise NotWritten("--prefix is for --include and --format systemd: a supervisord of its own needs none")
    if given["socket"] is not None and not given["include"]:
        raise NotWritten("--socket is for --include: a supervisord of its own has its socket in the home")
    if given["user"] and not systemd_wanted:
        raise NotWritten(
            '--user is for --format systemd: under supervisord give a pool its "user" in the settings'
        )
    if given["check"] and (systemd_wanted or given["include"]) and given["output"] is None:
        raise NotWritten("--check needs --output: what is it to be compared with?")


def _user(name: str | None) -> str:
    """Who the programs run as that no pool says a user of."""
    if name is None:
        if os.geteuid() == 0:
            raise NotWritten("say whom the programs run as: --user NAME (--user root, if you mean that)")
        return pwd.getpwuid(os.geteuid()).pw_name
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        raise NotWritten(f"--user: there is no user {name!r} on this host") from None


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise ArgumentTypeError(f"{text!r} is no address: give one such as 127.0.0.1:8300")
    return host, int(port)


def _prefix(text: str) -> str:
    if not text.isascii() or not all(sign.isalnum() or sign in "_.-" for sign in text) or len(text) > 40:
        raise ArgumentTypeError(f"{text!r} cannot begin a name: at most 40 letters, digits and _ . -")
    return text
