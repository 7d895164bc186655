"""What `manage.py shiftboss_listener` starts: the agent of this host, from the settings."""

import asyncio
import os
import re
import socket
import tempfile
from argparse import ArgumentParser
from functools import partial
from pathlib import Path

from shiftboss import conf
from shiftboss.queue.handlers import redactor_of
from shiftboss.queue.launch import database_dsn, refuse_unready_database
from shiftboss.queue.runtime import logs
from shiftboss.supervisor_conf import installation, logtail, places, programs, render
from shiftboss.supervisor_conf.crash_loops import Rule
from shiftboss.supervisor_conf.events import Events
from shiftboss.supervisor_conf.listener import Listener
from shiftboss.supervisor_conf.orders import Orders
from shiftboss.supervisor_conf.resources import Resources
from shiftboss.supervisor_conf.spool import Spool
from shiftboss.supervisor_conf.watch import Watch

EXAMPLES = """\
examples:
  manage.py shiftboss_listener
  SHIFTBOSS_HOST=web-1 manage.py shiftboss_listener --home /srv/shiftboss
  manage.py shiftboss_listener --home /srv/shiftboss --socket /run/supervisor.sock --prefix shiftboss-

It tells the record what the supervisord of the home runs and how programs ended, and does what people ask of them.
`shiftboss up` and the configuration of `shiftboss_supervisor_conf` run it already. One listener tells of a host at
a time; another one of the same name waits. SHIFTBOSS_HOST names the host where its own name would not do, as with
two homes on one machine.
SIGTERM ends it (exit 0).
"""


def declare(parser: ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--home", type=Path, help="home of the programs (default: SHIFTBOSS_HOME, or .shiftboss)")
    parser.add_argument("--socket", type=Path, help="socket of supervisord (default: that of the home)")
    parser.add_argument(
        "--prefix", default="", help="what the names of our programs begin with (default: nothing)"
    )
    parser.add_argument(
        "--events",
        action="store_true",
        help="supervisord tells it of changes, as in the configuration that we write",
    )


def listen(home: Path | None, socket_path: Path | None, prefix: str, *, takes_events: bool = False) -> None:
    """Be the agent of the home's host until a signal comes. Raises ShiftbossError, ConfigError.

    Without `socket_path` the home's supervisord is meant. `prefix` is what the names of our programs begin with.
    """
    if takes_events:
        Events.check()
    refuse_unready_database()
    logs.configure()
    config = conf.get()
    place = (home or installation.home_folder()).absolute()
    places.make_home(place)
    orders = orders_of(config, place, socket_path or render.socket_path(place), prefix)
    watch = Watch(
        orders.socket,
        place,
        user_of=partial(user_of, config, prefix=prefix),
        pool_of=partial(pool_of, config, prefix=prefix),
        log_of=orders.log_of,
        stopped=orders.stopped,
        prefix=prefix,
    )
    hostname = socket.gethostname()
    listener = Listener(
        os.environ.get("SHIFTBOSS_HOST") or hostname,
        hostname=hostname,
        home=str(place),
        code_version=os.environ.get("SHIFTBOSS_CODE_VERSION"),
        dsn=database_dsn(),
        watch=watch,
        spool=Spool(place / "spool"),
        orders=orders,
        resources=Resources(folders_of(place)),
        rule=rule_of(config),
        pools=config.pools,
        takes_events=takes_events,
    )
    asyncio.run(listener.run())


def folders_of(home: Path) -> dict[str, Path]:
    """The folders whose disks must not be full, by what is in them."""
    return {"home": home, "data": places.shared(home), "temporary files": Path(tempfile.gettempdir())}


def orders_of(config: conf.Config, home: Path, socket_path: Path, prefix: str) -> Orders:
    """What may be asked of the home's programs, by the settings."""
    return Orders(
        socket=socket_path,
        home=home,
        prefix=prefix,
        counts={pool.name: pool.most_workers for pool in config.pools.values()},
        stop_seconds=config.drain_seconds + programs.KILL_MARGIN_SECONDS + 10,
        log_of=partial(logtail.last_lines, redacted=redactor_of(config).text),
    )


def rule_of(config: conf.Config) -> Rule:
    """What is a loop of crashes, by the settings."""
    return Rule(ends=config.crash_loop_ends, seconds=config.crash_loop_seconds, lease_seconds=config.lease_seconds)


def pool_of(config: conf.Config, program: str, *, prefix: str = "") -> str | None:
    """The pool that a program is a worker of; None where it is none."""
    found = re.fullmatch(r"worker-(.+)-[0-9]+", program.removeprefix(prefix))
    return found[1] if found and found[1] in config.pools else None


def user_of(config: conf.Config, program: str, *, prefix: str = "") -> str | None:
    """The user that a program runs as; None where that is supervisord's."""
    pool = pool_of(config, program, prefix=prefix)
    return config.pools[pool].user if pool else None
