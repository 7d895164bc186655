"""From a Django project's settings to the Django-free programs that serve it: the keeper and the maintainer.

The program replaces this process (exec), so that nothing of Django stays in its memory. Its settings, and with
them the database's password, go over an inherited descriptor and never stand in a command line.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from django.conf import ENVIRONMENT_VARIABLE
from django.db import Error, NotSupportedError, connections
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from shiftboss import conf
from shiftboss.queue.authority import System
from shiftboss.queue.errors import StoreUnavailable, UnsupportedDatabase
from shiftboss.queue.observers import wanted
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.store import queues
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.schema import check_schema
from shiftboss.queue.store.statement import run

EXECUTOR_ARGV = (sys.executable, "-P", "-m", "django", "shiftboss_executor")
OBSERVER_ARGV = (sys.executable, "-P", "-m", "django", "shiftboss_observers")
_NOT_LIBPQ = frozenset({"context", "cursor_factory", "pool", "prepare_threshold", "server_side_binding"})


def database_dsn() -> str:
    """The connection string of the record's database. Raises UnsupportedDatabase for other vendors."""
    alias = conf.get().database
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise UnsupportedDatabase(
            f"DATABASES[{alias!r}] is {connection.vendor}; Shiftboss needs PostgreSQL 15 or newer: set "
            "SHIFTBOSS['DATABASE'] to the alias of one"
        )
    params = connection.get_connection_params()
    return make_conninfo(**{key: value for key, value in params.items() if key not in _NOT_LIBPQ})


def refuse_unready_database() -> None:
    """Raise SchemaTooOld, UnsupportedDatabase or StoreUnavailable where the database cannot serve."""
    database_dsn()
    reach_database()
    run(check_schema())
    connections.close_all()


def apply_settings() -> None:
    """Tell the record what the settings say of queues' limits; what a person has said of one stands."""
    limits = {name: Limit.of(options) for name, options in conf.get().queues.items()}
    run(queues.apply_settings(limits, authority=System()))


def reach_database() -> None:
    """Connect to the record's PostgreSQL. Raises UnsupportedDatabase, or StoreUnavailable naming place and fix."""
    connection = connections[conf.get().database]
    try:
        connection.ensure_connection()
    except NotSupportedError as error:
        raise UnsupportedDatabase(f"the database is too old: {error}") from None
    except Error as error:
        given = connection.settings_dict
        reason = _sentence(str(error))
        raise StoreUnavailable(
            f"the database {_place(given)} cannot be reached: {reason} {_fix(connection.alias, given)}"
        ) from None


def _place(given: Mapping[str, Any]) -> str:
    where = given["HOST"] or "the default socket"
    return f"{given['NAME']!r} at {where}" + (f":{given['PORT']}" if given["PORT"] else "")


def _sentence(text: str) -> str:
    line = " ".join(text.split())[:500]
    return line if line.endswith((".", "?", "!")) else f"{line}."


def _fix(alias: str, given: Mapping[str, Any]) -> str:
    """What to do about a database that does not answer, in the words of whoever named it."""
    if _is_of_the_url(given):
        # The embedded server is always on a socket.
        embedded = " (`shiftboss up` starts the embedded one)" if str(given["HOST"]).startswith("/") else ""
        return f"Start it{embedded}, or correct DATABASE_URL"
    if settings_module().startswith("shiftboss."):
        return "Start it, or set DATABASE_URL"
    return f"Start it, or correct DATABASES[{alias!r}] in {settings_module()}"


def _is_of_the_url(given: Mapping[str, Any]) -> bool:
    """Whether the settings follow DATABASE_URL; a project's own may have nothing to do with it."""
    try:
        url = conninfo_to_dict(os.environ.get("DATABASE_URL") or "")
    except ProgrammingError:
        return False
    return bool(url) and [str(url.get("host", "")), url.get("dbname")] == [str(given["HOST"]), given["NAME"]]


def keeper_config(pool_name: str) -> KeeperConfig:
    """The settings of a pool's keeper. Raises ConfigError for a pool that is not in the settings."""
    config = conf.get()
    try:
        pool = config.pools[pool_name]
    except KeyError:
        known = ", ".join(sorted(config.pools))
        raise conf.ConfigError(f"no pool {pool_name!r} in SHIFTBOSS['POOLS']; there is: {known}") from None
    return _keeper_config(config, pool, dsn=database_dsn())


def maintainer_config() -> KeeperConfig:
    """The settings of the maintainer: those of a keeper without queues or executors."""
    pool = conf.Pool(name="maintainer", queues=())
    return _keeper_config(conf.get(), pool, dsn=database_dsn())


def _keeper_config(config: conf.Config, pool: conf.Pool, *, dsn: str) -> KeeperConfig:
    return KeeperConfig(
        pool=pool.name,
        queues=pool.queues,
        processes=pool.processes,
        threads=pool.threads,
        isolated=pool.isolated,
        max_jobs=pool.max_jobs,
        max_rss_mb=pool.max_rss_mb,
        max_worker_rss_mb=pool.max_worker_rss_mb,
        lease_seconds=config.lease_seconds,
        heartbeat_seconds=config.heartbeat_seconds,
        poll_seconds=config.poll_seconds,
        drain_seconds=config.drain_seconds,
        grace_seconds=config.grace_seconds,
        backoff_seconds=config.backoff_seconds,
        backoff_cap_seconds=config.backoff_cap_seconds,
        stage_seconds=config.stage_seconds,
        reap_seconds=config.reap_seconds,
        unknown_task_seconds=config.unknown_task_seconds,
        retention_days=config.retention_days,
        quarantine_retention_days=config.quarantine_retention_days,
        partition_days_ahead=config.partition_days_ahead,
        client="shiftboss.queue.clients.local:connect",
        dsn=dsn,
        executor_argv=EXECUTOR_ARGV,
        code_version=os.environ.get("SHIFTBOSS_CODE_VERSION"),
        run_folder=str(run_folder(dsn)),
        redact_keys=config.redact_keys,
        keeps_output=config.redactor is None,
        observers=wanted(config.observers),
        observer_backlog=config.observer_backlog,
        observer_argv=OBSERVER_ARGV,
    )


def run_folder(dsn: str) -> Path:
    """Where keepers of one database leave notes: SHIFTBOSS_RUN_FOLDER, else a folder of the user's own."""
    if given := os.environ.get("SHIFTBOSS_RUN_FOLDER"):
        return Path(given)
    # The name can be read by others: nothing secret goes into it.
    address = conninfo_to_dict(dsn)
    public = [str(address.get(part, "")) for part in ("host", "port", "dbname")]
    mark = hashlib.sha256(" ".join(public).encode()).hexdigest()[:12]
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(parent) / f"shiftboss-{os.geteuid()}-{mark}"


def become(module: str, config: KeeperConfig) -> NoReturn:
    """Replace this process by `python -P -m MODULE`, with the settings on a descriptor."""
    connections.close_all()
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    text = config.to_json().encode()
    if len(text) > 60_000:
        raise conf.ConfigError(f"the settings of pool {config.pool!r} are too long: name fewer queues")
    os.write(writer, text)
    os.close(writer)
    os.environ.setdefault(ENVIRONMENT_VARIABLE, settings_module())
    # `python -P -m` does not put the project's folder on the path, as manage.py did.
    os.environ["PYTHONPATH"] = os.pathsep.join(project_paths())
    sys.stdout.flush()
    sys.stderr.flush()
    argv = [sys.executable, "-P", "-m", module, str(reader)]
    os.execv(sys.executable, argv)


def settings_module() -> str:
    """The dotted path of the project's settings."""
    from django.conf import settings

    return str(settings.SETTINGS_MODULE)


def project_paths() -> list[str]:
    """Folders of `sys.path` that are the project's: a program of `python -P -m` does not find them itself."""
    own = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
    folders: list[str] = []
    for entry in sys.path:
        path = os.path.realpath(entry or os.getcwd())
        inside = any(path == root or path.startswith(root + os.sep) for root in own)
        if not inside and os.path.isdir(path) and path not in folders:
            folders.append(path)
    return folders
