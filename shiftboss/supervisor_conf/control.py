"""Speaking with supervisord over its socket: a short call for each of the few methods that we use."""

import http.client
import xmlrpc.client
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from shiftboss.queue.errors import ShiftbossError

ALLOWED = frozenset(
    {
        *("getState", "getAllProcessInfo", "startProcess", "stopProcess", "tailProcessStdoutLog"),
        *("reloadConfig", "addProcessGroup", "removeProcessGroup"),
    }
)
"""The methods of `supervisor.*` that may be called. None takes a command line or a file's path."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of programs: in what the configuration says otherwise than supervisord runs them."""

    added: frozenset[str]
    changed: frozenset[str]
    removed: frozenset[str]


class SupervisorUnreachable(ShiftbossError):
    """Nobody answers on supervisord's socket."""


class SupervisorRefused(ShiftbossError):
    """supervisord answered with a fault, such as an unknown program."""


def call(socket: Path, method: str, *arguments: str | int | bool) -> Any:
    """The answer of supervisord to one method of `ALLOWED`.

    Raises ValueError for any other method, SupervisorUnreachable, SupervisorRefused. Every call makes its own
    connection: a proxy whose connection failed once stays dead.
    """
    if method not in ALLOWED:
        raise ValueError(f"{method!r} is not among the methods that may be called: {sorted(ALLOWED)}")
    transport = SupervisorTransport(None, None, serverurl=f"unix://{socket}")
    proxy = xmlrpc.client.ServerProxy("http://localhost", transport=transport)
    try:
        return getattr(proxy.supervisor, method)(*arguments)
    except xmlrpc.client.Fault as fault:
        raise SupervisorRefused(f"{method}: {fault.faultString}") from None
    except (OSError, http.client.HTTPException, xmlrpc.client.ProtocolError) as error:
        raise SupervisorUnreachable(f"supervisord does not answer on {socket}: {error}") from None
    finally:
        transport.close()


def programs(socket: Path, prefix: str = "") -> dict[str, dict[str, Any]]:
    """What supervisord says of its programs, by name: of those whose names begin so and are groups of their own.

    So of one that runs other things too, only what is ours. Raises SupervisorUnreachable, SupervisorRefused.
    """
    listed: list[dict[str, Any]] = call(socket, "getAllProcessInfo")
    ours = (info for info in listed if info["group"] == info["name"] and info["name"].startswith(prefix))
    return {info["name"]: info for info in ours}


def reload(socket: Path) -> Changes:
    """Have supervisord read its configuration anew, which by itself changes nothing that runs; what would.

    Raises SupervisorUnreachable, and SupervisorRefused where the configuration cannot be read.
    """
    [[added, changed, removed]] = call(socket, "reloadConfig")
    return Changes(frozenset(added), frozenset(changed), frozenset(removed))


def is_running(socket: Path) -> bool:
    """Whether supervisord answers, also while it is stopping its programs."""
    try:
        call(socket, "getState")
    except SupervisorUnreachable:
        return False
    except SupervisorRefused:
        pass  # while it stops its programs it refuses every call
    return True
