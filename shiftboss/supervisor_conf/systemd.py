"""systemd's units for the programs of a host: a target, a template for each pool, a service for each other one.

What is closed off is what a worker never needs; what handlers may need stays open: files of their user's, the
network, namespaces for sandboxes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from shiftboss.supervisor_conf import programs
from shiftboss.supervisor_conf.installation import Installation
from shiftboss.supervisor_conf.programs import Program

HEAD = "# Written by manage.py shiftboss_supervisor_conf from the settings {settings}; changes by hand are lost."

RESTART_SECONDS = 2

CLOSED_OFF = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "full",
    "ProtectClock": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "LockPersonality": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
}
"""Nothing that runs handlers in another place than their user's: no private /tmp, no closed /home."""


def units(
    installation: Installation, found: list[Program], *, prefix: str, user: str, env_file: Path | None = None
) -> dict[str, str]:
    """The texts of the units by the names of their files. Programs whose pool names no user run as `user`."""
    surroundings = {name: installation.surroundings()[name] for name in ("DJANGO_SETTINGS_MODULE", "PYTHONPATH")}
    head = HEAD.format(settings=installation.settings)
    target = f"{prefix.rstrip('-_.') or 'shiftboss'}.target"
    made: dict[str, str] = {}
    wanted: list[str] = []
    for program in found:
        one = replace(program, user=program.user or user)
        base = prefix + (f"worker-{program.pool}" if program.pool else program.name)
        if program.autostart:
            wanted.append(f"{base}@{program.number}.service" if program.pool else f"{base}.service")
        file = f"{base}@.service" if program.pool else f"{base}.service"
        made[file] = f"{head}\n\n{_service(one, target=target, surroundings=surroundings, env_file=env_file)}"
    whole = {
        "Unit": [("Description", "All programs of Shiftboss on this host"), *(("Wants", name) for name in wanted)],
        "Install": [("WantedBy", "multi-user.target")],
    }
    return {target: f"{head}\n\n{_text(whole)}"} | made


def _service(program: Program, *, target: str, surroundings: Mapping[str, str], env_file: Path | None) -> str:
    which = " %i" if program.pool else ""
    # systemd starts with an empty environment: what is only emptied for a user is not there.
    values = {**surroundings, **{name: text for name, text in program.environment.items() if text}}
    service = [
        ("Type", "exec"),
        ("User", program.user or ""),
        # The run folder is the unit's own, and goes with it: what a worker leaves behind, systemd has ended.
        ("RuntimeDirectory", "%N"),
        ("RuntimeDirectoryMode", "0700"),
        ("Environment", "SHIFTBOSS_RUN_FOLDER=%t/%N"),
        *(("Environment", _quoted(f"{name}={text}")) for name, text in values.items()),
        *([("EnvironmentFile", _specified(str(env_file)))] if env_file else []),
        ("ExecStart", command_line(programs.behind_gate(program))),
        ("Restart", "always"),
        ("RestartSec", str(RESTART_SECONDS)),
        # The signal is for the program, which stops its own children in order; the kill is for all of them.
        ("KillMode", "mixed"),
        ("KillSignal", f"SIG{program.stop_signal}"),
        ("TimeoutStopSec", str(program.stop_seconds)),
        # A run that takes too much memory ends alone; its worker sees it and goes on.
        ("OOMPolicy", "continue"),
        *([("MemoryMax", f"{program.memory_limit_mb}M")] if program.memory_limit_mb else []),
        *CLOSED_OFF.items(),
    ]
    sections = {
        "Unit": [
            ("Description", f"Shiftboss{which}: {_specified(program.about)}"),
            ("PartOf", target),
            ("Wants", "network-online.target"),
            ("After", "network-online.target postgresql.service"),
            # It is tried for ever: the gate waits by itself, and a worker that ended has to come back.
            ("StartLimitIntervalSec", "0"),
        ],
        "Service": service,
        "Install": [("WantedBy", target)],
    }
    return _text(sections)


def command_line(words: Iterable[str]) -> str:
    """A command as the value of `ExecStart=`, each word as it is."""
    return " ".join(_quoted(word).replace("$", "$$") for word in words)


def _quoted(text: str) -> str:
    if re.fullmatch(r"[\w@+=:,./-]+", text, flags=re.ASCII):
        return text
    text = _specified(text.replace("\\", "\\\\").replace('"', '\\"'))
    return '"' + text.replace("\n", "\\n").replace("\r", "\\r") + '"'


def _specified(text: str) -> str:
    return text.replace("%", "%%")


def _text(sections: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    return "\n".join(
        "".join([f"[{name}]\n", *(f"{key}={value}\n" for key, value in entries)])
        for name, entries in sections.items()
    )
