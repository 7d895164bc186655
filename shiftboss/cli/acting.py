"""How a command acts: who does it, why, whether it is meant, and what came of it, job by job."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from django.contrib.auth import get_user_model

from shiftboss.acts import Acted
from shiftboss.cli.command import Refused, WrongUsage
from shiftboss.cli.output import as_json, cell
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act, Person, Via, require
from shiftboss.queue.errors import Busy, InvalidJob, KeyHeld, MovedOn, NoSuchJob, ReasonNeeded, ShiftbossError

Answer = TypeVar("Answer")

FINAL_ACTS = frozenset(
    {
        *(Act.CANCEL, Act.DISCARD, Act.PURGE, Act.CANCEL_BACKFILL),
        *(Act.STOP_WORKER, Act.STOP_PROGRAM, Act.KILL_PROGRAM),
    }
)
"""Acts that no other act takes back: they are asked about first."""

DONE = {
    Act.CANCEL: "cancelled",
    Act.EXPEDITE: "expedited",
    Act.RERUN: "runs again",
    Act.REINSTATE: "reinstated",
    Act.DISCARD: "discarded",
    Act.QUARANTINE: "quarantined",
    Act.REPRIORITISE: "reprioritised",
    Act.RESCHEDULE: "rescheduled",
    Act.EDIT: "runs again with other arguments",
}


def person_of(given: argparse.Namespace) -> Person:
    """Who acts: whoever runs the command, or the user that `--as` names."""
    shell = Person.of_shell()
    if given.username is None:
        return shell
    users = get_user_model()
    try:
        user = users._default_manager.get_by_natural_key(given.username)
    except users.DoesNotExist:
        raise Refused(f"there is no user {given.username!r}") from None
    if not user.is_active:
        raise Refused(f"the user {given.username!r} is not active")
    person = Person.of_user(user, via=Via.CLI)
    # No password was asked for, so the audit tells who used the name.
    return replace(person, name=f"{person.name} ({shell.name})")


def permitted(act: Act, given: argparse.Namespace) -> Person:
    """Who acts, once it is certain that they may. Raises NotAllowed, Refused."""
    person = person_of(given)
    require(PERMISSIONS[act], by=person)
    return person


def check_reason(act: Act, given: argparse.Namespace) -> None:
    """Raise WrongUsage where the act wants a reason and none is given."""
    if act in NEED_REASON and not given.reason.strip():
        raise WrongUsage(f'{act} wants a reason, which the audit keeps: give --reason "…"')


def check_consent(act: Act, given: argparse.Namespace) -> None:
    """Raise WrongUsage where an act that is asked about first could ask nobody."""
    if act in FINAL_ACTS and not given.yes and not _somebody_is_there():
        raise WrongUsage(f"{act} cannot be taken back, and there is no terminal to ask: add --yes")


def confirm(act: Act, given: argparse.Namespace, what: Callable[[], str]) -> None:
    """Ask whether `what` is meant, for an act that is asked about first. Raises Refused where it is not."""
    if act not in FINAL_ACTS or given.yes:
        return
    print(f"{what()} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing was done")


def _somebody_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def act_on_each(
    act: Act, ids: Sequence[int], do: Callable[[int], Acted], *, given: argparse.Namespace, wish: str = ""
) -> int:
    """Do an act to one job after the other and print what came of each; 0 where all are done, else 1.

    `wish`: what was asked for, in words.
    """
    outcomes: list[dict[str, Any]] = []
    for job_id in ids:
        try:
            outcome = _done(worded(partial(do, job_id)))
        except (MovedOn, KeyHeld, NoSuchJob, Busy) as problem:
            outcome = _refused(act, job_id, problem)
        outcomes.append(outcome)
        if given.format == "text":
            print(_line(act, outcome, wish), flush=True)
    refused = sum(1 for outcome in outcomes if not outcome["done"])
    if given.format == "json":
        print(as_json({"act": str(act), "done": len(outcomes) - refused, "refused": refused, "jobs": outcomes}))
    return 1 if refused else 0


def worded(do: Callable[[], Answer]) -> Answer:
    """What an act answers; words that it cannot use are wrong usage."""
    try:
        return do()
    except (InvalidJob, ReasonNeeded) as problem:
        raise WrongUsage(str(problem)) from None


def _done(acted: Acted) -> dict[str, Any]:
    return {
        "job_id": str(acted.job_id),
        "done": True,
        "before": acted.before,
        "after": acted.after,
        "new_job_id": None if acted.new_job_id is None else str(acted.new_job_id),
    }


def _refused(act: Act, job_id: int, problem: ShiftbossError) -> dict[str, Any]:
    facts: dict[str, Any] = {"job_id": str(job_id), "done": False}
    match problem:
        case MovedOn():
            message = f"it is {problem.state}, and a {problem.state} job cannot be changed by {act}"
            return facts | {"code": "moved_on", "state": problem.state, "message": message}
        case KeyHeld():
            advice = f"its key is held by job {problem.holder}: wait for its end, or cancel it first"
            return facts | {
                "code": "key_held",
                "key": problem.key,
                "holder": str(problem.holder),
                "message": advice,
            }
        case Busy():
            return facts | {"code": "busy", "message": "somebody else is changing it just now: try again"}
    return facts | {"code": "no_such_job", "message": "there is no such job"}


def _line(act: Act, outcome: dict[str, Any], wish: str) -> str:
    job = f"job {outcome['job_id']}:"
    if not outcome["done"]:
        return f"{job} not done: {cell(outcome['message'])}"
    before, after = outcome["before"], outcome["after"]
    if act is Act.CANCEL and after == "running":
        return f"{job} running, its end is asked for"
    if act in {Act.RERUN, Act.EDIT}:
        return f"{job} {DONE[act]} as job {outcome['new_job_id']}, {after}"
    done = f"{job} {DONE[act]}{wish and f' to {wish}'}"
    if before == after:
        return f"{done}, {after} as before"
    return done + (f", {after}" if after != DONE[act] else "") + f" (was {before})"
