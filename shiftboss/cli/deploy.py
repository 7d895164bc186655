"""`shiftboss deploy`: new settings and new code brought to what runs, worker by worker."""

import argparse
import sys
import time
from datetime import datetime
from functools import partial
from typing import Any

from shiftboss import acts, conf
from shiftboss.cli import programs as on_programs
from shiftboss.cli import rolls
from shiftboss.cli.acting import check_reason, permitted, person_of
from shiftboss.cli.command import (
    Commands,
    Refused,
    WrongUsage,
    take_consent,
    take_format,
    take_person,
    take_reason,
)
from shiftboss.cli.output import as_json, cell
from shiftboss.cli.project import open_record
from shiftboss.console.rolls import facts, step_facts
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue.store import hosts
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf import control, installation, programs, readiness, render, updating, written
from shiftboss.supervisor_conf.updating import Wanted

EXAMPLES = """\
examples:
  shiftboss deploy --dry-run
  shiftboss deploy --reason "release 42" --yes
  shiftboss deploy --apply --reason "two more workers" --code-version v42 --yes

With the new code in its place, and after its migrations:
  1. shows how the configuration of the home (that of `shiftboss up`, or what `shiftboss_supervisor_conf --output`
     has written last) differs from the settings; --apply writes it and has supervisord read it
  2. refuses where migrations are missing
  3. restarts the workers of all pools on all hosts one after the other, as `shiftboss roll` does
  4. restarts the maintainers, consoles and agents of all hosts, unless --workers-only
Exit codes: 0 done; 1 refused, stopped, or --dry-run has found something to do; 2 wrong usage.
"""

SINGLE = ("maintainer", "web")
"""Programs that are restarted after the workers, and before the agent that restarts them."""

AGENT_SECONDS = 60.0
"""So long a new agent of a host may take to tell of it."""


def declare(to: Commands) -> None:
    """Add the command."""
    parser = to.add("deploy", deploy, help="Bring new settings and new code to what runs", epilog=EXAMPLES)
    parser.add_argument(
        "--apply", action="store_true", help="write the configuration where it differs, and read it in"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what differs and what would be restarted")
    parser.add_argument("--workers-only", action="store_true", help="leave all others as they are")
    parser.add_argument(
        "--code-version", metavar="TEXT", help="stop at a worker that comes up with another SHIFTBOSS_CODE_VERSION"
    )
    rolls.take_wait(parser)
    take_reason(parser, needed=True)
    take_consent(parser)
    take_person(parser)
    take_format(parser)


def deploy(given: argparse.Namespace) -> int:
    """Compare, check, restart."""
    if not given.dry_run:
        check_reason(Act.ROLL_POOL, given)
        if not given.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise WrongUsage("deploy asks first, and there is no terminal to ask: add --yes")
    open_record(given)
    person = person_of(given) if given.dry_run else permitted(Act.ROLL_POOL, given)
    if not given.workers_only:
        require(PERMISSIONS[Act.RESTART_PROGRAM], by=person)
    readiness.check_migrations()
    wanted = _wanted()
    found = _workers(person)
    if given.dry_run:
        return _tell(given, wanted, found)
    difference = wanted.difference if wanted else ""
    if difference and given.format == "text":
        print(difference, end="", flush=True)
    if difference and not given.apply:
        raise Refused(
            "the configuration differs from the settings: --apply writes it and reads it in; without it "
            "`shiftboss roll` restarts the workers as they are configured"
        )
    _confirm(given, found)
    say = partial(print, file=sys.stderr, flush=True)
    if wanted and difference:
        try:
            wanted.write()
        except OSError as problem:
            raise Refused(f"{problem.filename} cannot be written: {problem.strerror}") from None
        longest = conf.get().drain_seconds + programs.KILL_MARGIN_SECONDS + 10
        wanted.read_in(stop_seconds=longest, say=say)
    row, steps = rolls.watch(given, person, rolls.begin(given, person, None))
    restarted = _restart_singles(given, person) if row.state == "done" and not given.workers_only else []
    if given.format == "json":
        told = {"difference": difference, "roll": facts(row), "steps": list(map(step_facts, steps))}
        print(as_json(told | {"restarted": restarted}))
    is_done = row.state == "done" and all(one["done"] for one in restarted)
    return 0 if is_done or (given.wait == 0 and row.state == "running") else 1


def _wanted() -> Wanted | None:
    """The configuration of the home, where `shiftboss up` runs it, or a supervisord that it was written for."""
    home = installation.home_folder()
    noted = installation.load(home)
    if noted and control.is_running(render.socket_path(home)):
        return updating.of_up(noted, programs.programs(conf.get(), noted))
    found = written.load(home)
    if found is None:
        return None
    file, by = found
    if by.at is None or not control.is_running(by.at):
        return None
    return updating.of_written(file, by, by.at, by.programs(conf.get()))


def _workers(person: Person) -> list[tuple[str, str]]:
    """The workers that are up, with their hosts."""
    return [
        (row.name, str(one["name"]))
        for row in run(hosts.hosts(authority=person.authority))
        if row.alive
        for one in row.programs
        if one["pool"] and one["launcher"]
    ]


def _tell(given: argparse.Namespace, wanted: Wanted | None, found: list[tuple[str, str]]) -> int:
    difference = wanted.difference if wanted else None
    if given.format == "json":
        planned: dict[str, Any] = {
            "difference": difference,
            "workers": [{"host": host, "program": name} for host, name in found],
        }
        print(as_json(planned))
    else:
        where = installation.home_folder()
        if difference is None:
            print(
                f"nothing to compare: no supervisord runs that `shiftboss up` in {where}, or "
                "`shiftboss_supervisor_conf --output` for it, has configured"
            )
        else:
            print(difference or "the configuration is as the settings say", end="" if difference else "\n")
        print(f"{len(found)} workers would be restarted, one after the other:")
        for host, name in found:
            print(f"  {name} on {host}")
    return 1 if difference or found else 0


def _confirm(given: argparse.Namespace, found: list[tuple[str, str]]) -> None:
    if given.yes:
        return
    print(f"Restart {len(found)} workers one after the other? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing was done")


def _restart_singles(given: argparse.Namespace, person: Person) -> list[dict[str, Any]]:
    """Restart what is no worker, host by host, up to the first that fails; what became of each."""
    outcomes: list[dict[str, Any]] = []
    for host, name in _singles(person, SINGLE):
        outcomes.append(_restart(given, person, host, name))
        if not outcomes[-1]["done"]:
            return outcomes
    for host, name in _singles(person, ("listener",)):
        before = _agent(person, host)
        restarted = _restart(given, person, host, name)
        if restarted["state"] == "failed":
            continue  # it says that only its host can restart it, which is no failure of what was deployed
        outcomes.append(restarted)
        if restarted["done"] and not _is_followed(person, host, before):
            why = f"no new agent has told of {host} within {AGENT_SECONDS:g} seconds: see the log of {name} there"
            restarted |= {"done": False, "message": why}
            print(f"{cell(name)} on {cell(host)}: {cell(why)}", file=sys.stderr, flush=True)
    return outcomes


def _restart(given: argparse.Namespace, person: Person, host: str, name: str) -> dict[str, Any]:
    patient = argparse.Namespace(**vars(given) | {"wait": on_programs.WAIT_SECONDS})
    do = partial(acts.restart_program, host, name)
    return on_programs.carry_out(patient, person, f"{name} on {host}", do)


def _singles(person: Person, names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        (row.name, str(one["name"]))
        for row in run(hosts.hosts(authority=person.authority))
        if row.alive
        for one in row.programs
        if one["launcher"] and one["pool"] is None and one["name"].endswith(names)
    ]


def _agent(person: Person, host: str) -> datetime | None:
    """Since when the one that tells of a host does so; None where nobody does."""
    rows = run(hosts.hosts(authority=person.authority))
    return next((row.started_at for row in rows if row.name == host and row.alive), None)


def _is_followed(person: Person, host: str, before: datetime | None) -> bool:
    deadline = time.monotonic() + AGENT_SECONDS
    while (now := _agent(person, host)) is None or now == before:
        if time.monotonic() > deadline:
            return False
        time.sleep(on_programs.LOOK_SECONDS)
    return True
