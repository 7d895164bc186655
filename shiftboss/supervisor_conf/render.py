"""supervisord's configuration: whole, or as a part of one that a team has already.

Secrets are not in it: the programs inherit them from supervisord's own environment, or read them from a file.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from shiftboss.supervisor_conf import events, incarnations, launcher, places, programs
from shiftboss.supervisor_conf.installation import Installation
from shiftboss.supervisor_conf.programs import KILL_MARGIN_SECONDS, Program, RenderError

HEAD = "; Written by Shiftboss from the settings {settings}; what is changed here by hand is lost."


def socket_path(home: Path) -> Path:
    """Where supervisord listens; only its owner may connect."""
    return places.socket_folder(home) / "supervisor.sock"


def render(
    installation: Installation,
    found: list[Program],
    *,
    surroundings: Mapping[str, str] | None = None,
    env_file: Path | None = None,
) -> str:
    """The text of a whole configuration. Raises RenderError.

    Without `surroundings` it is for a supervisord that is started in the home, with all that its programs need in
    its environment. With them, all programs have these beside what supervisord is started with, and it can be
    started anywhere. The programs behind the gate read `env_file` as well.
    """
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
            **({"environment": environment(surroundings)} if surroundings else {}),
            # Said so on purpose; without it supervisord warns that it drops no privileges.
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        "supervisorctl": {"serverurl": value(f"unix://{socket_path(home)}")},
    }
    parts = [HEAD.format(settings=installation.settings) + "\n"]
    parts += [_text(name, options) for name, options in head.items()]
    for program in found:
        log = _log(installation, program.name) if surroundings else f"{installation.logs.name}/{program.name}.log"
        parts.append(_text(_title(program), _section(program, home, log, env_file), about=program.about))
    return "\n".join(parts)


def include(
    installation: Installation,
    found: list[Program],
    *,
    prefix: str,
    surroundings: Mapping[str, str],
    env_file: Path | None = None,
) -> str:
    """Sections for the `[include]` of a supervisord that runs other things too: nothing but programs, whose names
    begin with `prefix`, and absolute paths. Raises RenderError.
    """
    parts = [HEAD.format(settings=installation.settings) + "\n"]
    for program in (replace(one, name=prefix + one.name) for one in found):
        log = _log(installation, program.name)
        # A user of their own need not be let into the home, and supervisord enters it as that user.
        folder = "/" if program.user else value(installation.home)
        options = {"directory": folder} | _section(
            program, installation.home, log, env_file, surroundings=surroundings
        )
        if any("%(here)s" in text for text in options.values()):
            raise RenderError(
                f"{program.name} has a %(here)s in its environment or command: in a file that is included, "
                "supervisord puts a folder in its place, however it is written; put it into the file of --env-file"
            )
        parts.append(_text(_title(program), options, about=program.about))
    return "\n".join(parts)


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
    """`NAME="text",…`. Raises RenderError, which does not show the text, where there is no way of writing it."""
    return ",".join(f"{name}={_quoted(name, text)}" for name, text in values.items())


def _quoted(name: str, text: str) -> str:
    quote = "'" if '"' in text else '"'
    # Within quotes there is no escape, quotes at the ends are lost, and comments begin as everywhere.
    if quote in text or text != text.strip("'\"") or re.search(r"[\r\n\0]|\s[;#]", text):
        raise RenderError(
            f"what the environment variable {name} is to hold cannot be written into supervisord's configuration "
            "(both kinds of quotes, a quote at an end, a line break, or a space before ; or #): put it into the "
            "file of --env-file, or into the environment that supervisord is started in"
        )
    return f"{quote}{text.replace('%', '%%')}{quote}"


def _log(installation: Installation, name: str) -> str:
    """The log of a program as an absolute path, in which supervisord expands what it has expanded already."""
    if "%" in str(installation.logs):
        raise RenderError(
            f"the logs are in {installation.logs}, and supervisord trips over the %: choose another home"
        )
    return value(installation.logs / f"{name}.log")


def _text(name: str, options: Mapping[str, str], *, about: str = "") -> str:
    lines = [f"; {about}"] if about else []
    return "".join(
        f"{line}\n" for line in [*lines, f"[{name}]", *(f"{key} = {of}" for key, of in options.items())]
    )


def _title(program: Program) -> str:
    return f"{'eventlistener' if program.takes_events else 'program'}:{program.name}"


def _section(
    program: Program, home: Path, log: str, env_file: Path | None, *, surroundings: Mapping[str, str] | None = None
) -> dict[str, str]:
    options = {
        "command": value(shlex.join(supervised(program, home, env_file=env_file))),
        "priority": str(program.priority),
        "startsecs": str(program.start_seconds),
        "startretries": str(program.start_retries),
        **({} if program.autostart else {"autostart": "false"}),
        "autorestart": "true" if program.restart else "false",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_seconds),
        # The signal is for the program, which stops its own children in order; the kill is for all of them.
        "stopasgroup": "false",
        "killasgroup": "true",
        **(_with_events(log) if program.takes_events else _with_output(log)),
    }
    if program.user:
        options["user"] = program.user
    values = {**(surroundings or {}), **program.environment}
    return options | ({"environment": environment(values)} if values else {})


def _with_output(log: str) -> dict[str, str]:
    return {
        "redirect_stderr": "true",
        "stdout_logfile": log,
        "stdout_logfile_maxbytes": "10MB",
        "stdout_logfile_backups": "3",
    }


def _with_events(log: str) -> dict[str, str]:
    """Its standard output is for supervisord alone."""
    return {
        "events": events.KINDS,
        "buffer_size": str(events.BUFFERED),
        "stdout_logfile": "NONE",
        "stderr_logfile": log,
        "stderr_logfile_maxbytes": "10MB",
        "stderr_logfile_backups": "3",
    }


def supervised(program: Program, home: Path, *, env_file: Path | None = None) -> list[str]:
    """The command line that supervisord runs: a launcher, and the program with its limit of memory.

    Both end by the same signal when their parent dies: the launcher with supervisord, the program with it.
    """
    dies = places.dies_with_parent(program.dies_by)
    notes = str(incarnations.folder(home, program.user))
    limited = _limited(program.memory_limit_mb) if program.memory_limit_mb else []
    command = [*dies, *limited, *programs.behind_gate(program, env_file=env_file)]
    apart = [launcher.APART] if program.takes_events else []
    return [*dies, sys.executable, "-I", "-S", launcher.__file__, *apart, notes, program.name, "--", *command]


def _limited(megabytes: int) -> list[str]:
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        raise RenderError(
            'SHIFTBOSS["POOLS"] has a pool with "memory_limit_mb", and this host has no prlimit to hold it: '
            "install util-linux, or leave the key out"
        )
    # Data, not address space: what a program maps and never touches is no memory.
    return [prlimit, f"--data={megabytes * 1024 * 1024}"]
