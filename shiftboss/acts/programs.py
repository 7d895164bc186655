"""What people ask of the programs of a host: its agent does it, and the command tells what became of it."""

from shiftboss.acts.performing import Acted, Deed, at_once, perform
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue.errors import HostSilent, InvalidJob, NoSuchProgram
from shiftboss.queue.store import commands, holds
from shiftboss.queue.store.commands import Order
from shiftboss.queue.store.statement import run

MAX_NAME_LENGTH = 200
MAX_COUNT = 1000

WORDS = {
    Act.START_PROGRAM: "start",
    Act.DRAIN_PROGRAM: "drain",
    Act.STOP_PROGRAM: "stop",
    Act.KILL_PROGRAM: "kill",
    Act.RESTART_PROGRAM: "restart",
    Act.TAIL_PROGRAM: "tail",
    Act.SCALE_POOL: "scale",
}
"""What each act asks of the agent."""

ENDS_A_HOLD = {
    Act.START_PROGRAM: "start",
    Act.RESTART_PROGRAM: "start",
    Act.DRAIN_PROGRAM: "stop",
    Act.STOP_PROGRAM: "stop",
}
"""Acts after which a program is not held back any more, and whether it is to be up or down then."""


def start_program(
    host: str, program: str, *, by: Person, reason: str = "", request_id: str | None = None
) -> Acted:
    """Ask a host to start a program. As for all of these, `command_id` is of the command, which tells the rest.

    Raises NoSuchProgram, and HostSilent where the host's agent does not answer.
    """
    return _ask(Act.START_PROGRAM, host, program, by, reason, request_id)


def drain_program(host: str, program: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Ask a host to stop a program in order, and to leave it down: a worker ends once its runs have."""
    return _ask(Act.DRAIN_PROGRAM, host, program, by, reason, request_id)


def stop_program(host: str, program: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Ask a host to stop a program now, and to leave it down: a worker gives back what it runs."""
    return _ask(Act.STOP_PROGRAM, host, program, by, reason, request_id)


def kill_program(host: str, program: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Ask a host to end a program at once that was asked to stop and does not: what it runs is lost."""
    return _ask(Act.KILL_PROGRAM, host, program, by, reason, request_id)


def restart_program(host: str, program: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Ask a host to drain a program and to start it again."""
    return _ask(Act.RESTART_PROGRAM, host, program, by, reason, request_id)


def tail_program(host: str, program: str, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Ask a host for the last lines of a program's log."""
    return _ask(Act.TAIL_PROGRAM, host, program, by, reason, request_id)


def tail_again(command_id: int, *, by: Person) -> bool:
    """Look at a log again, by one's own command that asked for it, for `FOLLOW_SECONDS` after that.

    The audit has it already: who follows a log looks once. False where it has to be asked for anew, or is being
    read just now.
    """
    require(PERMISSIONS[Act.TAIL_PROGRAM], by=by)
    with at_once():
        return run(commands.tail_again(command_id, authority=by.authority, by=by.name))


def release_program(
    host: str, program: str, *, by: Person, reason: str = "", request_id: str | None = None
) -> Acted:
    """Let go a program that is held back because it crashed in a loop: its host's agent starts it at once.

    So does the next one where this one is gone. Raises NoSuchProgram where it is not held back.
    """
    act = Act.RELEASE_PROGRAM
    require(PERMISSIONS[act], by=by)
    _check_names(host, program)

    def do() -> Deed:
        ended = _release(host, program, "release", by)
        if ended is None:
            raise NoSuchProgram(f"{program} on {host} is not held back")
        before = {"step": ended.step, "until": ended.until.isoformat()}
        return Deed(before=before, after={"hold_id": str(ended.id)})

    wish = {"host": host, "program": program}
    return perform(act, do, by=by, reason=reason, request_id=request_id, asked=wish)


def scale_pool(
    host: str, pool: str, count: int, *, by: Person, reason: str, request_id: str | None = None
) -> Acted:
    """Ask a host to run so many workers of a pool, at most as many as the settings allow."""
    if not 0 <= count <= MAX_COUNT:
        raise InvalidJob(f"a pool has 0 to {MAX_COUNT} workers, not {count}")
    return _ask(Act.SCALE_POOL, host, pool, by, reason, request_id, count=count)


def _ask(
    act: Act, host: str, name: str, by: Person, reason: str, request_id: str | None, *, count: int | None = None
) -> Acted:
    require(PERMISSIONS[act], by=by)
    _check_names(host, name)
    is_pool = act is Act.SCALE_POOL
    thing = {"pool": name} if is_pool else {"program": name}
    order = Order(host=host, verb=WORDS[act], count=count, **thing)

    def do() -> Deed:
        asked = run(commands.ask(order, authority=by.authority, by=by.name))
        if asked.id is None:
            raise _refusal(host, f"{'pool' if is_pool else 'program'} {name!r}", asked)
        after = {"command_id": str(asked.id)}
        if act in ENDS_A_HOLD and (ended := _release(host, name, ENDS_A_HOLD[act], by)):
            after["hold_id"] = str(ended.id)
        return Deed(after=after)

    wish = {"host": host, **thing} | ({} if count is None else {"count": count})
    return perform(act, do, by=by, reason=reason, request_id=request_id, asked=wish)


def _release(host: str, program: str, how: str, by: Person) -> holds.Released | None:
    return run(holds.release(host, program, authority=by.authority, how=how, by=by.name))


def _check_names(*names: str) -> None:
    for name in names:
        if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidJob(f"a name has 1 to {MAX_NAME_LENGTH} printable characters")


def _refusal(host: str, thing: str, asked: commands.Asked) -> NoSuchProgram | HostSilent:
    if not asked.is_known:
        return NoSuchProgram(f"there is no host {host!r}: none of its agents was ever heard of")
    if not asked.is_alive:
        return HostSilent(f"the agent of {host} is silent: look whether shiftboss_listener runs there")
    return NoSuchProgram(f"the host {host} has no {thing}")
