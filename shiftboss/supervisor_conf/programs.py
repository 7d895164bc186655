"""What runs on a host, said without the words of any supervisor."""

import os
import pwd
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shiftboss.conf import Config, Pool
from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import postgres
from shiftboss.supervisor_conf.installation import Installation

WEB_THREADS = 8
"""Threads of the console's server, and the connections that they share."""

FIRST_COMMAND = "first-command"
"""The name of the program that runs once."""

KILL_MARGIN_SECONDS = 45
"""What a worker gets beyond its drain time: to end its executors, tell the record, and close (it is slow where the
database does not answer)."""


class RenderError(ShiftbossError):
    """Something cannot be said in a supervisor's configuration; the text names it and the fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program that a supervisor keeps alive.

    `command` is what it is to become in the end: what stands before that (the gate, where it is `gated`) is the
    matter of whoever writes a configuration. `dies_by` is the signal that it gets when its supervisor dies.
    `takes_events` says that it wants to be told of what happens to the others.
    """

    name: str
    command: list[str]
    priority: int
    stop_seconds: int
    about: str = ""
    stop_signal: str = "TERM"
    dies_by: str = "TERM"
    gated: bool = False
    takes_events: bool = False
    start_seconds: int = 1
    start_retries: int = 10
    restart: bool = True
    autostart: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    memory_limit_mb: int | None = None
    pool: str | None = None
    number: int = 1


def programs(
    config: Config, installation: Installation, *, web: bool = True, listener: Sequence[str] | None = ()
) -> list[Program]:
    """What runs on this host, in the order of its start. Raises RenderError.

    `listener`: the options of the host's agent; None where none runs.
    """
    found = [_postgres(installation.home)] if installation.embedded else []
    if listener is not None:
        found.append(_listener(listener))
    found.append(_maintainer())
    if web:
        found.append(_web(installation))
    for pool in config.pools.values():
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", pool.name):
            raise RenderError(
                f'SHIFTBOSS["POOLS"] has a pool {pool.name!r}: name it with letters, digits and _ . - only'
            )
        found += [_worker(pool, n, config, installation) for n in range(1, pool.most_workers + 1)]
    if installation.first_command:
        found.append(_once(FIRST_COMMAND, shlex.split(installation.first_command)))
    return found


def refuse_foreign_users(config: Config, installation: Installation) -> None:
    """Raise RenderError where `shiftboss up`, run by this user, could not run a pool as the user that it names."""
    for pool in config.pools.values():
        if pool.user is None or pool.most_workers == 0 or account(pool).pw_uid == os.geteuid():
            continue
        where = f'SHIFTBOSS["POOLS"][{pool.name!r}]["user"] is {pool.user!r}'
        if os.geteuid() != 0:
            raise RenderError(f"{where}: start as root, or as {pool.user}, or leave the key out")
        if installation.embedded:
            raise RenderError(
                f"{where}, who cannot reach the embedded database: name another one in DATABASE_URL, or leave the "
                "key out"
            )


def account(pool: Pool) -> pwd.struct_passwd:
    """The entry of the user of a pool that names one. Raises RenderError where this host does not know them."""
    try:
        return account_of(pool.user or "")
    except KeyError:
        raise RenderError(
            f'SHIFTBOSS["POOLS"][{pool.name!r}]["user"]: there is no user {pool.user!r} on this host: make one, '
            "or write the configuration on the host that uses it"
        ) from None


def account_of(user: str) -> pwd.struct_passwd:
    """The entry of a user, given by name or number. Raises KeyError."""
    return pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)


def python(*words: str) -> list[str]:
    """A command line of this interpreter that never imports from the folder it happens to run in."""
    return [sys.executable, "-P", "-m", *words]


def web_server(bind: str) -> list[str]:
    """The console's server at `HOST:PORT`."""
    settings = "python:shiftboss.supervisor_conf.gunicorn_conf"
    return python("gunicorn", "-c", settings, "--bind", bind, "shiftboss.supervisor_conf.web:application()")


def behind_gate(program: Program, *, env_file: Path | None = None) -> list[str]:
    """The command of a program, behind the gate where it waits at one."""
    if not program.gated:
        return program.command
    options = ["--env-file", str(env_file)] if env_file else []
    return [*python("shiftboss.supervisor_conf.gate", *options, "--"), *program.command]


def _postgres(home: Path) -> Program:
    return Program(
        name="postgres",
        about="the embedded database",
        command=postgres.command(home),
        priority=10,
        stop_signal="INT",
        dies_by="INT",
        stop_seconds=int(postgres.START_SECONDS),
        start_retries=30,
    )


def _listener(options: Sequence[str]) -> Program:
    return Program(
        name="listener",
        about="the agent of this host: tells the record what runs here",
        command=python("django", "shiftboss_listener", "--events", *options),
        gated=True,
        takes_events=True,
        # Before all that it tells of, and so ended after them.
        priority=15,
        stop_seconds=15,
    )


def _maintainer() -> Program:
    return Program(
        name="maintainer",
        about="upkeep of the record; one is enough, more do no harm",
        command=python("django", "shiftboss_maintainer"),
        gated=True,
        priority=20,
        stop_seconds=15,
    )


def _web(installation: Installation) -> Program:
    return Program(
        name="web",
        about="the console",
        command=web_server(f"{installation.host}:{installation.port}"),
        gated=True,
        priority=20,
        stop_seconds=15,
        environment={"SHIFTBOSS_WEB_POOL": str(WEB_THREADS)},
    )


def _worker(pool: Pool, number: int, config: Config, installation: Installation) -> Program:
    return Program(
        name=f"worker-{pool.name}-{number}",
        about=_of_pool(pool),
        command=python("django", "shiftboss_worker", "--pool", pool.name),
        gated=True,
        # Without supervisord the embedded database ends too, and there is nothing to give jobs back to.
        dies_by="KILL" if installation.embedded else "TERM",
        priority=30,
        stop_seconds=int(config.drain_seconds) + KILL_MARGIN_SECONDS,
        environment=_surroundings(pool),
        user=pool.user,
        memory_limit_mb=pool.memory_limit_mb,
        autostart=number <= pool.workers,
        pool=pool.name,
        number=number,
    )


def _of_pool(pool: Pool) -> str:
    trusted = f"; trust: {pool.trust}" if pool.trust else ""
    return f"worker of the pool {pool.name}; queues: {', '.join(pool.queues)}; {pool.slots} slots{trusted}"


def _surroundings(pool: Pool) -> dict[str, str]:
    """What is in the environment of a pool's programs; what the pool says itself comes last."""
    values: dict[str, str] = {}
    if pool.user:
        entry = account(pool)
        # supervisord changes the uid and nothing else. The folders of whoever started it are not this user's:
        # empty means that the worker finds one of its own.
        values = {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
        values |= {"SHIFTBOSS_RUN_FOLDER": "", "XDG_RUNTIME_DIR": ""}
    if pool.trust:
        values["SHIFTBOSS_TRUST"] = pool.trust
    return values | dict(pool.environment)


def _once(name: str, command: list[str]) -> Program:
    return Program(
        name=name,
        about="runs once at every start",
        command=python("django", *command),
        gated=True,
        priority=40,
        stop_seconds=10,
        start_seconds=0,
        restart=False,
    )
