"""Speaking with supervisord over its socket: a short call for each of the few methods that we use."""

import http.client
import socket as sockets
import xmlrpc.client
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftboss.queue.errors import ShiftbossError

ALLOWED = frozenset(
    {
        *("getState", "getAllProcessInfo", "startProcess", "stopProcess", "tailProcessStdoutLog"),
        *("reloadConfig", "addProcessGroup", "removeProcessGroup"),
    }
)
"""The methods of `supervisor.*` that may be called. None takes a command line or a file's path."""

ANSWER_SECONDS = 10.0
"""supervisord does one thing at a time, and none of ours takes long. One that says nothing for so long hangs."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of programs: in what the configuration says otherwise than supervisord runs them."""

    added: frozenset[str]
    changed: frozenset[str]
    removed: frozenset[str]


class SupervisorUnreachable(ShiftbossError):
    """Nobody answers on supervisord's socket."""


class SupervisorSilent(SupervisorUnreachable):
    """Somebody holds supervisord's socket and does not answer in time."""


class SupervisorRefused(ShiftbossError):
    """supervisord answered with a fault, such as an unknown program."""


class _Connection(http.client.HTTPConnection):
    """HTTP over a UNIX socket, to the end of a time."""

    def __init__(self, file: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_SECONDS)
        self._file = file

    def connect(self) -> None:
        self.sock = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._file))


class _Transport(xmlrpc.client.Transport):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = _Connection(self._file)
        self._connection = host, connection  # which close() closes
        return connection


def call(socket: Path, method: str, *arguments: str | int | bool) -> Any:
    """The answer of supervisord to one method of `ALLOWED`.

    Raises ValueError for any other method, SupervisorUnreachable (SupervisorSilent where the answer does not come
    within `ANSWER_SECONDS`), SupervisorRefused. Every call makes its own
    connection: a proxy whose connection failed once stays dead.
    """
    if method not in ALLOWED:
        raise ValueError(f"{method!r} is not among the methods that may be called: {sorted(ALLOWED)}")
    transport = _Transport(socket)
    proxy = xmlrpc.client.ServerProxy("http://localhost", transport=transport)
    try:
        return getattr(proxy.supervisor, method)(*arguments)
    except xmlrpc.client.Fault as fault:
        raise SupervisorRefused(f"{method}: {fault.faultString}") from None
    except TimeoutError:
        raise SupervisorSilent(
            f"supervisord has not answered on {socket} for {ANSWER_SECONDS:g} seconds: it hangs, or is stopped"
        ) from None
    except (OSError, http.client.HTTPException, xmlrpc.client.ProtocolError) as error:
        raise SupervisorUnreachable(f"supervisord does not answer on {socket}: {error}") from None
    finally:
        transport.close()


def programs(socket: Path, prefix: str = "") -> dict[str, dict[str, Any]]:
    """What supervisord says of its programs, by name: of those whose names begin so and are groups of their own.

    So of one that runs other things too, only what is ours. `logfile` is the log of any of them, also of one whose
    output is no log. Raises SupervisorUnreachable, SupervisorRefused.
    """
    listed: list[dict[str, Any]] = call(socket, "getAllProcessInfo")
    ours = (info for info in listed if info["group"] == info["name"] and info["name"].startswith(prefix))
    return {info["name"]: info | {"logfile": info["logfile"] or info["stderr_logfile"]} for info in ours}


def reload(socket: Path) -> Changes:
    """Have supervisord read its configuration anew, which by itself changes nothing that runs; what would.

    Raises SupervisorUnreachable, and SupervisorRefused where the configuration cannot be read.
    """
    [[added, changed, removed]] = call(socket, "reloadConfig")
    return Changes(frozenset(added), frozenset(changed), frozenset(removed))


def is_running(socket: Path) -> bool:
    """Whether there is a supervisord, also one that is stopping its programs, or hangs."""
    try:
        call(socket, "getState")
    except (SupervisorSilent, SupervisorRefused):
        return True  # it is there; while it stops its programs it refuses every call
    except SupervisorUnreachable:
        return False
    return True
