"""`shiftboss ps`, `logs`, `start`, `drain`, `stop`, `restart`, `scale`: the programs of hosts, by their agents."""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from shiftboss import acts
from shiftboss.acts import Acted
from shiftboss.cli.acting import check_consent, check_reason, confirm, permitted, person_of, worded
from shiftboss.cli.command import (
    Commands,
    Refused,
    WrongUsage,
    count_from_1,
    take_consent,
    take_format,
    take_person,
    take_reason,
)
from shiftboss.cli.output import as_json, block, cell, table
from shiftboss.cli.project import open_record
from shiftboss.console.short import told
from shiftboss.permissions import NEED_REASON, VIEW, Act, Person, require
from shiftboss.queue.store import commands, holds, hosts, processes
from shiftboss.queue.store.commands import CommandRow
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.hosts import HostRow
from shiftboss.queue.store.processes import ProcessRow
from shiftboss.queue.store.statement import run

WAIT_SECONDS = 120
MOST_HELD = 1000
LOOK_SECONDS = 0.2
"""How often the record is asked what became of a command, which an agent on another host carries out."""

ENDED_LIVES = 1000
"""So many of the newest are looked through for how each program ended last."""

PS_EXAMPLES = """\
examples:
  shiftboss ps
  shiftboss ps --host web-1
  shiftboss ps --format json | jq -r '.hosts[].programs[] | select(.state == "FATAL").name'

What the agents of the hosts (shiftboss_listener) see of their supervisord. LAST END is how a program ended the
last time that nobody had asked it to: its exit code, its signal, or `unknown`. HELD: it crashes in a loop, and is
held back until then; `shiftboss release` starts it at once.
"""

LOGS_EXAMPLES = """\
examples:
  shiftboss logs worker-default-1
  shiftboss logs web --host web-1 --lines 50

The last lines of a program's log, at most 200, as its host's agent reads them now: without what is redacted and
without what a terminal would obey.
"""

RELEASE_EXAMPLES = """\
examples:
  shiftboss release worker-default-1
  shiftboss release web --host web-1 --reason "the port is free again"

A program that crashes in a loop is held back for a while, each time for longer; `shiftboss ps` shows until when,
and `shiftboss ps --format json` why. Its host's agent starts it at once. Where it goes on crashing, it is held
back again.
"""

SCALE_EXAMPLES = """\
examples:
  shiftboss scale default 3 --reason "the mailing begins"
  shiftboss scale default 1 --host web-1 --reason "the mailing is done"

At most as many workers as the pool's "max_workers" in SHIFTBOSS["POOLS"], else its "workers". Those that go finish
what they run. It lasts, until another number is said, or the settings say another one.
"""

VERBS: dict[Act, tuple[str, Callable[..., Acted], str, str]] = {
    Act.START_PROGRAM: (
        "start",
        acts.start_program,
        "Start programs that are down",
        """\
examples:
  shiftboss start worker-default-2
""",
    ),
    Act.DRAIN_PROGRAM: (
        "drain",
        acts.drain_program,
        "Stop programs in order and leave them down; workers finish what they run",
        """\
examples:
  shiftboss drain worker-default-1 --reason "its jobs need a look"
  shiftboss drain --pool default --host web-1 --reason "web-1 is to be rebooted"

Runs have DRAIN_SECONDS; what has not ended then is given back. `shiftboss start` starts them again.
""",
    ),
    Act.STOP_PROGRAM: (
        "stop",
        acts.stop_program,
        "Stop programs now and leave them down; workers give back what they run",
        """\
examples:
  shiftboss stop worker-default-1 --reason "it drains for too long"
  shiftboss stop worker-default-1 --reason "its jobs hang" --yes
""",
    ),
    Act.KILL_PROGRAM: (
        "kill",
        acts.kill_program,
        "End programs at once that were asked to stop and do not",
        """\
examples:
  shiftboss kill worker-default-1 --reason "it has not stopped for ten minutes"
  shiftboss kill worker-default-1 --host web-1 --reason "it hangs" --yes

Only for what is STOPPING in `shiftboss ps`. Nothing is given back: what a worker ran comes back once its leases
are over, and has lost that run.
""",
    ),
    Act.RESTART_PROGRAM: (
        "restart",
        acts.restart_program,
        "Drain programs and start them again, one after the other",
        """\
examples:
  shiftboss restart web --reason "it has eaten all memory"
  shiftboss restart --pool default --reason "new code"

The next one is not touched before the last one runs again; where one does not come up, the rest stays as it is.
""",
    ),
}
"""The word, the act, what it does and examples."""


def declare(to: Commands) -> None:
    """Add the commands."""
    listing = to.add("ps", ps, help="List the programs of the hosts", epilog=PS_EXAMPLES)
    _take_host(listing)
    take_person(listing)
    take_format(listing)
    reading = to.add("logs", logs, help="Show the end of a program's log", epilog=LOGS_EXAMPLES)
    reading.add_argument("program", metavar="PROGRAM")
    reading.add_argument("--lines", type=count_from_1, metavar="N", default=200, help="at most (default: 200)")
    _take_host(reading)
    _take_wait(reading)
    take_person(reading)
    take_format(reading)
    for act, (word, _, text, examples) in VERBS.items():
        parser = to.add(word, partial(_on_programs, act), help=text, epilog=examples)
        parser.add_argument("programs", metavar="PROGRAM", nargs="*")
        parser.add_argument("--pool", metavar="POOL", help="the workers of this pool")
        _take_act(act, parser)
    releasing = to.add(
        "release", release, help="Start programs that are held back because they crash", epilog=RELEASE_EXAMPLES
    )
    releasing.add_argument("programs", metavar="PROGRAM", nargs="+")
    _take_act(Act.RELEASE_PROGRAM, releasing)
    scaling = to.add("scale", scale, help="Say how many workers of a pool run on a host", epilog=SCALE_EXAMPLES)
    scaling.add_argument("pool", metavar="POOL")
    scaling.add_argument("count", metavar="COUNT", type=_count)
    _take_act(Act.SCALE_POOL, scaling)


def ps(given: argparse.Namespace) -> int:
    """Print what the agents see."""
    open_record(given)
    person = person_of(given)
    require(VIEW, by=person)
    found = [row for row in _hosts(person) if given.host in (None, row.name)]
    if given.host is not None and not found:
        raise Refused(f"there is no host {given.host!r}: none of its agents was ever heard of")
    ends, held = _last_ends(person), _held(person)
    if given.format == "json":
        print(as_json({"hosts": [_host_facts(row, ends, held) for row in found]}))
        return 0
    heads = ("HOST", "PROGRAM", "STATE", "PID", "FOR", "MEMORY", "CPU", "LAST END")
    cells = [
        (
            row.name,
            program["name"],
            _state(row, program, held.get((row.name, program["name"]))),
            program["pid"],
            _age(program["since"]),
            None if program["memory_kb"] is None else f"{program['memory_kb'] / 1024:,.0f} MB",
            None if program.get("cores") is None else f"{program['cores']:.2f}",
            _end(ends.get((row.name, program["name"]))),
        )
        for row in found
        for program in row.programs
    ]
    print(table(heads, cells, right=frozenset({"PID", "FOR", "MEMORY", "CPU"})) if cells else "no programs")
    for row in found:
        if not row.alive:
            silent = f"the agent of {cell(row.name)} is silent for {row.heartbeat_age_seconds:.0f} s"
            print(f"{silent}: this is what it saw last", file=sys.stderr)
        elif row.trouble:
            print(f"{cell(row.name)}: {cell(row.trouble)}", file=sys.stderr)
        for shortage in row.short_of:
            print(f"{cell(row.name)}: {cell(told(shortage))}", file=sys.stderr)
    return 0


def logs(given: argparse.Namespace) -> int:
    """Print the end of a log."""
    open_record(given)
    person = permitted(Act.TAIL_PROGRAM, given)
    host = _host_of(person, given.host, program=given.program)
    acted = worded(partial(acts.tail_program, host, given.program, by=person))
    row = _awaited(person, acted, seconds=given.wait, is_quiet=True)
    if row.state != "done":
        raise Refused(f"{given.program} on {host}: {_why(row)}")
    lines = (row.result or {})["lines"][-given.lines :]
    print(
        as_json({"host": host, "program": given.program, "lines": lines})
        if given.format == "json"
        else block("\n".join(lines))
    )
    return 0


def release(given: argparse.Namespace) -> int:
    """Let programs go that are held back, and wait until their agents have started them."""
    act = Act.RELEASE_PROGRAM
    open_record(given)
    person = permitted(act, given)
    outcomes: list[dict[str, Any]] = []
    named = [(given.host or _holding(person, name), name) for name in dict.fromkeys(given.programs)]
    for host, name in named:
        worded(partial(acts.release_program, host, name, by=person, reason=given.reason))
        started = _taken_up(person, host, name, seconds=given.wait)
        outcomes.append({"host": host, "program": name, "done": True, "started": started})
        if given.format == "text":
            said = "started" if started else "its agent starts it once it answers"
            print(f"{cell(name)} on {cell(host)}: held back no more, {said}", flush=True)
    if given.format == "json":
        print(as_json({"act": str(act), "done": len(outcomes), "refused": 0, "programs": outcomes}))
    return 0


def _holding(person: Person, program: str) -> str:
    """The only host on which a program is held back. Raises Refused."""
    having = sorted(host for host, name in _held(person) if name == program)
    if not having:
        raise Refused(f"{program} is held back on no host: see `shiftboss ps`")
    if len(having) > 1:
        raise Refused(f"{program} is held back on {', '.join(having)}: say which with --host")
    return having[0]


def _taken_up(person: Person, host: str, program: str, *, seconds: float) -> bool:
    """Whether the agent has started it, looked at for so many seconds."""
    deadline = time.monotonic() + seconds
    while (host, program) in _held(person, at_all=True):
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _held(person: Person, *, at_all: bool = False) -> dict[tuple[str, str], HoldRow]:
    """Programs that are held back; `at_all`: also those that their agents have only to start."""
    rows = run(holds.holds(authority=person.authority, only_open=True, limit=MOST_HELD))
    return {(row.host, row.program): row for row in rows if at_all or row.released_at is None}


def scale(given: argparse.Namespace) -> int:
    """Ask a host to run so many workers."""
    check_reason(Act.SCALE_POOL, given)
    open_record(given)
    person = permitted(Act.SCALE_POOL, given)
    host = _host_of(person, given.host, pool=given.pool)
    do = partial(acts.scale_pool, host, given.pool, given.count)
    return _report(Act.SCALE_POOL, given, [carry_out(given, person, f"{given.pool} on {host}", do)], left=[])


def _on_programs(act: Act, given: argparse.Namespace) -> int:
    _, do, *_ = VERBS[act]
    if bool(given.programs) == bool(given.pool):
        raise WrongUsage("name programs, or a pool with --pool")
    check_reason(act, given)
    check_consent(act, given)
    open_record(given)
    person = permitted(act, given)
    if given.pool:
        host = _host_of(person, given.host, pool=given.pool)
        named = [(host, name) for name in _workers_of(person, host, given.pool, down=act is Act.START_PROGRAM)]
        if not named:
            raise Refused(f"no worker of {given.pool} on {host} is {'down' if act is Act.START_PROGRAM else 'up'}")
    else:
        names = list(dict.fromkeys(given.programs))
        named = [(_host_of(person, given.host, program=name), name) for name in names]
    what = ", ".join(f"{cell(name)} on {cell(host)}" for host, name in named)
    confirm(act, given, lambda: f"{VERBS[act][0].capitalize()} {what}?")
    outcomes: list[dict[str, Any]] = []
    for host, name in named:
        outcomes.append(carry_out(given, person, f"{name} on {host}", partial(do, host, name)))
        if not outcomes[-1]["done"]:
            break
    return _report(act, given, outcomes, left=[name for _, name in named[len(outcomes) :]])


def carry_out(given: argparse.Namespace, person: Person, thing: str, do: Callable[..., Acted]) -> dict[str, Any]:
    """Ask, wait for what becomes of it, and say so; the facts of it."""
    acted = worded(partial(do, by=person, reason=given.reason))
    row = _awaited(person, acted, seconds=given.wait, is_quiet=given.format == "json")
    outcome = {
        "command_id": str(row.id),
        "host": row.host,
        "of": row.program or row.pool,
        "done": row.state == "done",
        "state": row.state,
        "result": row.result,
        "message": None if row.state == "done" else _why(row),
    }
    if given.format == "text":
        states = (row.result or {}).get("states", {})
        said = ", ".join(f"{name} {state.lower()}" for name, state in states.items()) or "nothing to do"
        print(
            f"{cell(thing)}: {cell(said if outcome['done'] else 'not done: ' + str(outcome['message']))}",
            flush=True,
        )
    return outcome


def _report(act: Act, given: argparse.Namespace, outcomes: list[dict[str, Any]], *, left: list[str]) -> int:
    refused = sum(1 for outcome in outcomes if not outcome["done"])
    if given.format == "json":
        done = len(outcomes) - refused
        print(as_json({"act": str(act), "done": done, "refused": refused, "left": left, "commands": outcomes}))
    elif left:
        print(f"left as they are: {', '.join(map(cell, left))}", file=sys.stderr)
    return 1 if refused else 0


def _awaited(person: Person, acted: Acted, *, seconds: float, is_quiet: bool) -> CommandRow:
    """The command once it has ended, or as it is after so many seconds."""
    deadline, said = time.monotonic() + seconds, None
    while True:
        row = run(commands.command(acted.command_id or 0, authority=person.authority))
        if row is None:
            raise Refused(f"the command {acted.command_id} is forgotten")
        if row.state not in ("waiting", "claimed") or time.monotonic() >= deadline:
            return row
        if row.progress and row.progress != said and not is_quiet:
            said = row.progress
            print(f"  {cell(said)}", file=sys.stderr, flush=True)
        time.sleep(LOOK_SECONDS)


def _why(row: CommandRow) -> str:
    match row.state:
        case "failed":
            return str((row.result or {}).get("error", "its agent says no more"))
        case "expired":
            return "its agent has not taken it in time, and does not do it any more"
        case "lost":
            return "its agent is gone since it began: nobody knows whether it was done"
    return f"not yet: command {row.id} goes on" + (f" ({row.progress})" if row.progress else "")


def _host_of(person: Person, host: str | None, *, program: str | None = None, pool: str | None = None) -> str:
    """The host that is named, else the only one that lives and has the thing. Raises Refused."""
    if host is not None:
        return host
    key, name = ("pool", pool) if pool else ("name", program)
    having = [row.name for row in _hosts(person) if row.alive and any(one[key] == name for one in row.programs)]
    if not having:
        raise Refused(
            f"no host whose agent lives has {'a pool' if pool else 'a program'} {name!r}: see `shiftboss ps`"
        )
    if len(having) > 1:
        raise Refused(f"{name} is on {', '.join(having)}: say which with --host")
    return having[0]


def _workers_of(person: Person, host: str, pool: str, *, down: bool) -> list[str]:
    programs = [one for row in _hosts(person) if row.name == host for one in row.programs]
    return [str(one["name"]) for one in programs if one["pool"] == pool and (one["launcher"] is None) == down]


def _hosts(person: Person) -> list[HostRow]:
    return run(hosts.hosts(authority=person.authority))


def _last_ends(person: Person) -> dict[tuple[str, str], ProcessRow]:
    found: dict[tuple[str, str], ProcessRow] = {}
    for life in run(processes.lives(authority=person.authority, ended=True, logs=False, limit=ENDED_LIVES)):
        if not life.asked:
            found.setdefault((life.host, life.program), life)
    return found


def _state(row: HostRow, program: dict[str, Any], hold: HoldRow | None) -> str:
    """What is said of a program: as supervisord does, but for one that is down because it is held back."""
    state = str(program["state"])
    if hold and program["launcher"] is None:
        return f"HELD until {hold.until:%H:%M:%S}"
    return state if row.alive and row.trouble is None else f"{state}?"


def _hold_facts(hold: HoldRow | None) -> dict[str, Any] | None:
    if hold is None:
        return None
    return {"held_at": hold.held_at, "until": hold.until, "step": hold.step, "why": hold.evidence}


def _host_facts(
    row: HostRow, ends: dict[tuple[str, str], ProcessRow], held: dict[tuple[str, str], HoldRow]
) -> dict[str, Any]:
    return {
        "name": row.name,
        "alive": row.alive,
        "heartbeat_age_seconds": row.heartbeat_age_seconds,
        "trouble": row.trouble,
        "gap_from": row.gap_from,
        "gap_until": row.gap_until,
        "dropped": row.dropped,
        "resources": row.resources,
        "short_of": [asdict(one) for one in row.short_of],
        "programs": [
            {
                **program,
                "last_end": _end_facts(ends.get((row.name, program["name"]))),
                "hold": _hold_facts(held.get((row.name, program["name"]))),
            }
            for program in row.programs
        ],
    }


def _end_facts(life: ProcessRow | None) -> dict[str, Any] | None:
    if life is None:
        return None
    return {
        "at": life.ended_at,
        "ending": life.ending,
        "code": life.code,
        "signal": life.signal,
        "uptime_seconds": life.uptime_seconds,
        "jobs": life.jobs,
    }


def _end(life: ProcessRow | None) -> str | None:
    if life is None or life.ended_at is None:
        return None
    how = {"code": f"exit code {life.code}", "signal": f"signal {life.signal}"}.get(str(life.ending), "unknown")
    return f"{life.ended_at:%Y-%m-%d %H:%M:%S} {how}"


def _age(since: float | None) -> str | None:
    if since is None:
        return None
    seconds = max(0, int(time.time() - since))
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    return f"{days}d {hours:02}:{rest // 60:02}" if days else f"{hours}:{rest // 60:02}:{rest % 60:02}"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 9999")
    return int(text)


def _take_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="HOST", help="the host (default: the only one that has it)")


def _take_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=_count,
        metavar="SECONDS",
        default=WAIT_SECONDS,
        help=f"how long to wait for what becomes of it (default: {WAIT_SECONDS})",
    )


def _take_act(act: Act, parser: argparse.ArgumentParser) -> None:
    _take_host(parser)
    _take_wait(parser)
    take_reason(parser, needed=act in NEED_REASON)
    take_consent(parser)
    take_person(parser)
    take_format(parser)
