"""Rolling restarts: the workers of a pool, or of all pools, one after the other over all hosts."""

from shiftboss.acts.performing import LARGEST_ID, Acted, Deed, perform
from shiftboss.acts.programs import MAX_NAME_LENGTH
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue.errors import HostSilent, InvalidJob, NoSuchProgram, NoSuchRoll, RollRefused
from shiftboss.queue.store import rolls
from shiftboss.queue.store.statement import run


def roll_pool(
    pool: str | None,
    *,
    by: Person,
    reason: str,
    code_wanted: str | None = None,
    request_id: str | None = None,
) -> Acted:
    """Restart the workers of a pool (None: of all pools) one after the other; `roll_id` tells how far it is.

    It stops at a worker that does not come up, or with another code version than `code_wanted`. Raises
    RollRefused where one runs already, NoSuchProgram where no such worker is up, HostSilent where the agents of
    those that are do not answer.
    """
    require(PERMISSIONS[Act.ROLL_POOL], by=by)
    for text in filter(None, (pool, code_wanted)):
        if len(text) > MAX_NAME_LENGTH or not text.isprintable():
            raise InvalidJob(f"a name has 1 to {MAX_NAME_LENGTH} printable characters")

    def do() -> Deed:
        begun = run(rolls.begin(pool, authority=by.authority, by=by.name, reason=reason, code_wanted=code_wanted))
        if begun.id is not None:
            after = {"roll_id": str(begun.id), "items": begun.steps}
            return Deed(after=after | ({"silent": begun.silent} if begun.silent else {}))
        if begun.running is not None:
            raise RollRefused(
                f"rolling restart {begun.running} runs: wait for its end, or cancel it", begun.running
            )
        if begun.silent:
            raise HostSilent(f"the agents of {', '.join(begun.silent)} are silent: look whether they run")
        of = f"of the pool {pool!r} " if pool else ""
        raise NoSuchProgram(f"no worker {of}is up on any host whose agent lives")

    wish = {} if pool is None else {"pool": pool}
    wish |= {} if code_wanted is None else {"code_wanted": code_wanted}
    return perform(Act.ROLL_POOL, do, by=by, reason=reason, request_id=request_id, asked=wish)


def cancel_roll(roll_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """End a rolling restart before its next worker; the one in hand comes back.

    Raises NoSuchRoll, and RollRefused where it has ended.
    """
    require(PERMISSIONS[Act.CANCEL_ROLL], by=by)
    if not 0 < roll_id <= LARGEST_ID:
        raise NoSuchRoll(f"there is no rolling restart {roll_id}")

    def do() -> Deed:
        was = run(rolls.cancel(roll_id, authority=by.authority))
        if was is None:
            raise NoSuchRoll(f"there is no rolling restart {roll_id}, or it was forgotten 30 days after its end")
        state, is_cancelled = was
        if not is_cancelled:
            raise RollRefused(f"rolling restart {roll_id} has ended: it is {state}", roll_id)
        return Deed(before={"state": state}, after={"state": "cancelled"})

    asked = {"roll_id": str(roll_id)}
    return perform(Act.CANCEL_ROLL, do, by=by, reason=reason, request_id=request_id, asked=asked)
