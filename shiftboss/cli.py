"""The command line: `shiftboss up`, `shiftboss status`, `shiftboss run`.

Exit codes: 0 fine, 1 refused or not found, 2 wrong usage.
"""

import argparse
import json
import os
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from shiftboss import conf
from shiftboss.conf import ConfigError
from shiftboss.queue.errors import NotStorable, ShiftbossError
from shiftboss.supervisor_conf import installation
from shiftboss.supervisor_conf.installation import BUNDLED, Installation

HOST = "127.0.0.1"
FIRST_PORT = 8300
STOPPED_SHOWN_SECONDS = 600
"""How long a worker that has stopped stays in the words of `status`; its JSON tells of all."""

EXAMPLES = """\
examples:
  shiftboss up                      make what is missing and run everything, until Ctrl-C
  shiftboss status                  what the queues hold and how the workers are
  shiftboss run reports.tasks.send --args '["2026-01"]'
                                    run one task here and now, without a server

Files are kept in .shiftboss/ in the current folder; SHIFTBOSS_HOME names another one.
Exit codes: 0 fine, 1 refused or not found, 2 wrong usage.
"""

UP_EXAMPLES = """\
examples:
  shiftboss up
  shiftboss up --port 9000
  shiftboss up --settings mysite.settings --pythonpath .
  DATABASE_URL=postgresql://me@db.example/jobs shiftboss up

Without DATABASE_URL an embedded PostgreSQL is made and started. The console's address and login are printed;
the password of the first operator stays in .shiftboss/admin-password. Logs are in .shiftboss/log/.
"""

STATUS_EXAMPLES = """\
examples:
  shiftboss status
  shiftboss status --format json | jq .states

the JSON object:
  states     {STATE: jobs} over all queues, every state
  capped     true where a count of finished jobs stops at a limit: there are at least that many
  queues     [{"queue", "states": {STATE: jobs}, "oldest_available_seconds"}]
  workers    [{"id", "pool", "host", "pid", "state", "alive", "slots", "in_use", "heartbeat_age_seconds",
             "heartbeat_seconds", "lease_seconds", "lag_ms", "worst_lag_ms"}]
  oldest_available_seconds   how long the longest-waiting available job has been due; null without one
"""

RUN_EXAMPLES = """\
examples:
  shiftboss run reports.tasks.send --args '["2026-01"]' --kwargs '{"draft": true}'
  shiftboss run mysite.tasks.clean --settings mysite.settings --pythonpath .

The task runs in this process. No server, worker or record is used; nothing is enqueued, retried or stored.
Its result is printed as JSON, in the last line.
"""


class Refused(ShiftbossError):
    """The command cannot do what was asked; the text says why."""


class WrongUsage(ShiftbossError):
    """The words of the command cannot be meant so; the text says what to give instead."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = _parser().parse_args(argv)
    try:
        code: int = given.command(given)
    except WrongUsage as problem:
        print(f"shiftboss: {problem}", file=sys.stderr)
        return 2
    except (ShiftbossError, ConfigError, ImproperlyConfigured) as problem:
        print(f"shiftboss: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    except BrokenPipeError:
        # Whoever read the output has gone (`| head`); the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def up(given: argparse.Namespace) -> int:
    """Prepare the installation and keep its programs running in the foreground."""
    from shiftboss.supervisor_conf import foreground, places, prepare, render, web

    home = installation.home_folder()
    places.make_home(home)
    with foreground.alone(home):
        places.private_folder(home / "log")
        wanted = _installation(given, home, _port(given))
        wanted = replace(wanted, console=web.console_path())
        password = prepare.prepare(wanted, say=_say)
        wanted.save()
        programs = render.programs(conf.get(), wanted, first_command=given.first)
        text = render.render(wanted, programs)
        _greet(wanted, password)
        return foreground.run(wanted, text, say=_say)


def status(given: argparse.Namespace) -> int:
    """Print what the queues hold and how the workers are."""
    from shiftboss import System
    from shiftboss.queue.store import read
    from shiftboss.queue.store.schema import check_schema
    from shiftboss.queue.store.statement import run as answer
    from shiftboss.supervisor_conf import readiness

    if not _anything_to_ask(given):
        home = installation.home_folder()
        raise Refused(
            f"there is no installation in {home}: run `shiftboss up` here, go to the folder where it runs, name "
            "its home with SHIFTBOSS_HOME, or name your project with --settings and --pythonpath"
        )
    _set_up(given)
    readiness.check_server()
    answer(check_schema())
    counts = answer(read.counts(authority=System()))
    workers = answer(read.workers(authority=System()))
    report = _report(counts, workers)
    print(json.dumps(report, indent=2) if given.format == "json" else _as_text(report))
    return 0


def run(given: argparse.Namespace) -> int:
    """Run one task in this process and print its result."""
    args = _json("--args", given.args, list)
    kwargs = _json("--kwargs", given.kwargs, dict)
    module, _, function = given.task.rpartition(".")
    if not all([*module.split("."), function]):
        raise WrongUsage(f"{given.task!r}: give the dotted path of the task, as in shop.tasks.send_receipt")
    _set_up(given)
    from shiftboss.queue import payload, registry
    from shiftboss.queue.runtime.context import Context

    limit = conf.get().max_args_bytes
    # There and back, so that the task sees just what a worker would give it.
    try:
        text = payload.encode_arguments(args, kwargs, max_bytes=limit)
    except NotStorable as problem:
        raise WrongUsage(str(problem)) from None
    args, kwargs = payload.decode_arguments(text)
    task: Any = registry.resolve(given.task)
    context = [Context(job_id=0, fence=0, attempt=1)] if task.takes_context else []
    try:
        result = task.call(*context, *args, **kwargs)
    except (Exception, SystemExit) as error:
        traceback.print_exception(error)
        raise Refused(f"{given.task} failed: {type(error).__name__}: {error}") from error
    answer = payload.encode_result(result, max_bytes=conf.get().max_result_bytes)
    print("null" if answer is None else answer)
    return 0


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--settings",
        metavar="MODULE",
        help="settings module of your project (default: DJANGO_SETTINGS_MODULE, what `shiftboss up` used here, "
        f"or {BUNDLED})",
    )
    shared.add_argument("--pythonpath", metavar="FOLDER", help="folder to import your project from")
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="shiftboss", description="Jobs in PostgreSQL.", epilog=EXAMPLES, formatter_class=raw
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, function: Any, help: str, epilog: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=help, description=f"{help}.", epilog=epilog, formatter_class=raw, parents=[shared]
        )
        made.set_defaults(command=function)
        return made

    starting = command("up", up, "Prepare what is missing and run everything until Ctrl-C", UP_EXAMPLES)
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
    asking = command("status", status, "Show the queues and the workers", STATUS_EXAMPLES)
    asking.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    running = command("run", run, "Run one task here and now, without a server", RUN_EXAMPLES)
    running.add_argument("task", metavar="TASK", help="dotted path of the task, as in reports.tasks.send")
    running.add_argument("--args", metavar="JSON", default="[]", help="positional arguments, a JSON list")
    running.add_argument("--kwargs", metavar="JSON", default="{}", help="keyword arguments, a JSON object")
    return parser


def _say(text: str) -> None:
    """Print a line; a terminal that is gone must not keep us from stopping in order."""
    with suppress(OSError):
        print(text, flush=True)


def _greet(wanted: Installation, password: str | None) -> None:
    from django.conf import settings

    from shiftboss.supervisor_conf.prepare import OPERATOR, PASSWORD_FILE

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
    from django.db import connections

    from shiftboss.supervisor_conf.postgres import Postgres

    url = os.environ.get("DATABASE_URL")
    postgres = None if url else Postgres.of(home)
    wanted = Installation(
        home=home,
        settings=given.settings or os.environ.get("DJANGO_SETTINGS_MODULE") or BUNDLED,
        path=_path(given),
        database_url=url or (postgres.url() if postgres else None),
        embedded=postgres is not None,
        host=HOST,
        port=port,
    )
    _activate(wanted)
    if postgres is None or _leads_to(connections[conf.get().database].settings_dict, postgres.sockets):
        return wanted
    # The settings name a database of their own and do not read DATABASE_URL.
    del os.environ["DATABASE_URL"]
    return replace(wanted, database_url=None, embedded=False)


def _leads_to(settings: dict[str, Any], sockets: Path) -> bool:
    return str(settings["HOST"]) == str(sockets)


def _set_up(given: argparse.Namespace) -> None:
    """Set up Django with the settings asked for, else those of the installation in the home."""
    home = installation.home_folder()
    noted = installation.load(home)
    path = _path(given)
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


def _anything_to_ask(given: argparse.Namespace) -> bool:
    """Whether anything names a database: settings, an address, or the note of an installation."""
    named = given.settings or os.environ.get("DJANGO_SETTINGS_MODULE") or os.environ.get("DATABASE_URL")
    return bool(named) or installation.load(installation.home_folder()) is not None


def _default(name: str, text: str) -> None:
    """Set a variable of the environment where it is not set, or empty."""
    os.environ[name] = os.environ.get(name) or text


def _activate(wanted: Installation) -> None:
    wanted.activate()
    _django()


def _django() -> None:
    """`django.setup()`, with a settings module that cannot be imported as a clear error."""
    import django

    name = os.environ["DJANGO_SETTINGS_MODULE"]
    try:
        django.setup()
    except ModuleNotFoundError as error:
        raise Refused(
            f"the settings module {name!r} cannot be loaded ({error}): give the folder of your project "
            "with --pythonpath, and the right module with --settings"
        ) from None


def _path(given: argparse.Namespace) -> tuple[str, ...]:
    """The folders to import from, absolute: `--pythonpath`, the PYTHONPATH that we were started with."""
    from shiftboss.supervisor_conf.places import CODE

    folders = [given.pythonpath] if given.pythonpath else []
    folders += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return tuple(dict.fromkeys([*map(os.path.abspath, folders), str(CODE)]))


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


def _json(option: str, text: str, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """The value of an option in JSON. Raises WrongUsage for anything that is not JSON or not of this kind."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise WrongUsage(f"{option} is not JSON: {error}") from None
    if not isinstance(value, kind):
        wanted = "list, such as '[1, \"a\"]'" if kind is list else "object, such as '{\"a\": 1}'"
        raise WrongUsage(f"{option} must be a JSON {wanted}")
    return value


def _report(counts: Sequence[Any], workers: Sequence[Any]) -> dict[str, Any]:
    """The object that STATUS_EXAMPLES describes."""
    from shiftboss.queue.states import State

    totals: Counter[str] = Counter()
    queues: dict[str, dict[str, Any]] = {}
    for count in counts:
        queue = queues.setdefault(
            count.queue, {"queue": count.queue, "states": {}, "oldest_available_seconds": None}
        )
        queue["states"][str(count.state)] = count.jobs
        totals[str(count.state)] += count.jobs
        if count.state is State.AVAILABLE:
            queue["oldest_available_seconds"] = count.oldest_seconds
    ages = [queue["oldest_available_seconds"] for queue in queues.values()]
    return {
        "states": {str(state): totals[str(state)] for state in State},
        "capped": any(count.capped for count in counts),
        "queues": [queues[name] for name in sorted(queues)],
        "workers": [_worker(worker) for worker in workers],
        "oldest_available_seconds": max((age for age in ages if age is not None), default=None),
    }


def _worker(worker: Any) -> dict[str, Any]:
    names = "id pool host pid state alive slots in_use heartbeat_age_seconds heartbeat_seconds lease_seconds "
    return {name: getattr(worker, name) for name in (names + "lag_ms worst_lag_ms").split()}


def _as_text(report: dict[str, Any]) -> str:
    lines = ["Jobs" + (" (counts of finished jobs are capped)" if report["capped"] else "")]
    width = max((len(queue["queue"]) for queue in report["queues"]), default=0)
    for queue in report["queues"]:
        held = "  ".join(f"{state} {jobs:,}" for state, jobs in queue["states"].items())
        age = queue["oldest_available_seconds"]
        waiting = "" if age is None else f"  (oldest available: {age:.1f} s)"
        lines.append(f"  {queue['queue']:<{width}}  {held}{waiting}")
    if not report["queues"]:
        lines.append("  none yet")
    lines.append("Workers")
    shown = [_worker_as_text(worker) for worker in report["workers"] if not _is_long_stopped(worker)]
    return "\n".join([*lines, *(shown or ["  none"])])


def _worker_as_text(worker: dict[str, Any]) -> str:
    state = worker["state"] if worker["alive"] or worker["state"] == "stopped" else "lost"
    return (
        f"  {worker['pool']}  {worker['host']}:{worker['pid']}  {state}  "
        f"{worker['in_use']} of {worker['slots']} busy  heartbeat {worker['heartbeat_age_seconds']:.1f} s ago "
        f"(lease {worker['lease_seconds']:g} s)"
    )


def _is_long_stopped(worker: dict[str, Any]) -> bool:
    age: float = worker["heartbeat_age_seconds"]
    return worker["state"] == "stopped" and age > STOPPED_SHOWN_SECONDS


if __name__ == "__main__":
    sys.exit(main())
