"""supervisord's configuration, made from the settings.

Secrets are not in it: the programs inherit them from supervisord's own environment.
"""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shiftboss.conf import Config
from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import places, postgres
from shiftboss.supervisor_conf.installation import Installation

WEB_THREADS = 8
"""Threads of the console's server, and the connections that they share."""

FIRST_COMMAND = "first-command"
"""The name of the program that runs once."""

KILL_MARGIN_SECONDS = 45
"""What a worker gets beyond its drain time: to end its executors, tell the record, and close (it is slow where the
database does not answer)."""


class RenderError(ShiftbossError):
    """Something cannot be said in supervisord's configuration; the text names it and the fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One section `[program:NAME]`; it is a group of its own, so that it can be added and removed alone."""

    name: str
    command: list[str]
    priority: int
    stop_seconds: int
    stop_signal: str = "TERM"
    start_seconds: int = 1
    start_retries: int = 10
    restart: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


def programs(config: Config, installation: Installation, *, first_command: str = "") -> list[Program]:
    """What runs on this host, in the order of its start.

    `first_command` is a management command with its arguments, run once at every start.
    """
    found = [_postgres(installation.home)] if installation.embedded else []
    found += [_maintainer(), _web(installation)]
    for pool in config.pools.values():
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", pool.name):
            raise RenderError(
                f'SHIFTBOSS["POOLS"] has a pool {pool.name!r}: name it with letters, digits and _ . - only'
            )
        found += [_worker(pool.name, n, config, installation) for n in range(1, pool.workers + 1)]
    if first_command:
        found.append(_once(FIRST_COMMAND, shlex.split(first_command)))
    return found


def socket_path(home: Path) -> Path:
    """Where supervisord listens; only its owner may connect."""
    return places.socket_folder(home) / "supervisor.sock"


def render(installation: Installation, found: list[Program]) -> str:
    """The text of the configuration. Raises RenderError."""
    home = installation.home
    head = {
        "unix_http_server": {"file": value(socket_path(home)), "chmod": "0700"},
        "supervisord": {
            "identifier": "shiftboss",
            "nodaemon": "true",
            "silent": "true",
            "directory": value(home),
            "pidfile": value(home / "supervisord.pid"),
            "logfile": value(installation.logs / "supervisord.log"),
            "logfile_maxbytes": "10MB",
            "logfile_backups": "3",
            "childlogdir": value(installation.logs),
            # Said so on purpose; without it supervisord warns that it drops no privileges.
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
    }
    sections = head | {f"program:{program.name}": _section(program, installation) for program in found}
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {text}\n" for key, text in options.items())
        for name, options in sections.items()
    )


def drain_seconds(file: Path) -> int | None:
    """How long the workers of a configuration may drain at most; None where the file tells of none."""
    written = RawConfigParser(strict=False)
    with suppress(ConfigParserError):
        written.read(file, encoding="utf-8")
    workers = [name for name in written.sections() if name.startswith("program:worker-")]
    waits = [written.getint(name, "stopwaitsecs") - KILL_MARGIN_SECONDS for name in workers]
    return max(waits, default=None)


def value(given: object) -> str:
    """A text as a value of the configuration: `%` doubled. RenderError where no way of writing it exists."""
    text = str(given)
    if re.search(r"[\r\n\0]|\s[;#]", text) or text != text.strip():
        raise RenderError(
            f"{text!r} cannot be written into supervisord's configuration (a line break, or a space before "
            "; or #): choose another path or name"
        )
    return text.replace("%", "%%")


def environment(values: Mapping[str, str]) -> str:
    """`NAME="text",…`; RenderError where a text has both kinds of quotes, or one at its ends."""
    return ",".join(f"{name}={_quoted(text)}" for name, text in values.items())


def _quoted(text: str) -> str:
    quote = "'" if '"' in text else '"'
    if quote in text or text != text.strip("'\""):
        raise RenderError(f"{text!r} cannot be quoted in supervisord's configuration: leave out the quotes")
    return f"{quote}{value(text)}{quote}"


def _section(program: Program, installation: Installation) -> dict[str, str]:
    options = {
        "command": value(shlex.join(program.command)),
        "priority": str(program.priority),
        "startsecs": str(program.start_seconds),
        "startretries": str(program.start_retries),
        "autorestart": "true" if program.restart else "false",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_seconds),
        # The signal is for the program, which stops its own children in order; the kill is for all of them.
        "stopasgroup": "false",
        "killasgroup": "true",
        "redirect_stderr": "true",
        # Relative to the home, where supervisord runs: it expands this one value twice, and trips over a `%`.
        "stdout_logfile": f"{installation.logs.name}/{program.name}.log",
        "stdout_logfile_maxbytes": "10MB",
        "stdout_logfile_backups": "3",
    }
    return options | ({"environment": environment(program.environment)} if program.environment else {})


def python(*words: str) -> list[str]:
    """A command line of this interpreter that never imports from the folder it happens to run in."""
    return [sys.executable, "-P", "-m", *words]


def web_server(bind: str) -> list[str]:
    """The console's server at `HOST:PORT`."""
    settings = "python:shiftboss.supervisor_conf.gunicorn_conf"
    return python("gunicorn", "-c", settings, "--bind", bind, "shiftboss.supervisor_conf.web:application()")


def gated(command: list[str], *, dies_by: str = "TERM") -> list[str]:
    """The command behind the gate, ended by the signal when supervisord dies."""
    return [*places.dies_with_parent(dies_by), *python("shiftboss.supervisor_conf.gate", "--"), *command]


def _postgres(home: Path) -> Program:
    return Program(
        name="postgres",
        command=[*places.dies_with_parent("INT"), *postgres.command(home)],
        priority=10,
        stop_signal="INT",
        stop_seconds=int(postgres.START_SECONDS),
        start_retries=30,
    )


def _maintainer() -> Program:
    return Program(
        name="maintainer",
        command=gated(python("django", "shiftboss_maintainer")),
        priority=20,
        stop_seconds=15,
    )


def _web(installation: Installation) -> Program:
    return Program(
        name="web",
        command=gated(web_server(f"{installation.host}:{installation.port}")),
        priority=20,
        stop_seconds=15,
        environment={"SHIFTBOSS_WEB_POOL": str(WEB_THREADS)},
    )


def _worker(pool: str, number: int, config: Config, installation: Installation) -> Program:
    return Program(
        name=f"worker-{pool}-{number}",
        # Without supervisord the embedded database ends too, and there is nothing to give jobs back to.
        command=gated(
            python("django", "shiftboss_worker", "--pool", pool),
            dies_by="KILL" if installation.embedded else "TERM",
        ),
        priority=30,
        stop_seconds=int(config.drain_seconds) + KILL_MARGIN_SECONDS,
    )


def _once(name: str, command: list[str]) -> Program:
    return Program(
        name=name,
        command=gated(python("django", *command)),
        priority=40,
        stop_seconds=10,
        start_seconds=0,
        restart=False,
    )
