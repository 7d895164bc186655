"""What can go wrong, named for what happened. Every error carries the facts and the fix in its text."""


def shown(value: object) -> str:
    """A value as the text of an error shows it, whatever it is."""
    try:
        return repr(value)[:120]
    except Exception:  # a number with thousands of digits, or a repr of the user's own
        return f"a {type(value).__name__}"


class ShiftbossError(Exception):
    """The root of all errors that Shiftboss raises on purpose."""


class NotAllowed(ShiftbossError):
    """The authority given does not permit this call."""


class OutOfScope(NotAllowed):
    """`what` is not within the `scope` to which somebody of the staff is narrowed."""

    def __init__(self, what: str, scope: str) -> None:
        super().__init__(f"{what}: you act within {scope} only")
        self.what = what
        self.scope = scope


class NoSuchJob(ShiftbossError):
    """No job with this id is visible to the authority given."""


class NoSuchBackfill(NoSuchJob):
    """No backfill with this id is visible to the authority given."""


class NoSuchWorker(NoSuchJob):
    """No worker with this id is known, or no longer."""


class NoSuchProgram(NoSuchJob):
    """No host of this name is known, or it has no such program or pool."""


class NoSuchRoll(NoSuchJob):
    """No rolling restart with this id is known, or no longer."""


class RollRefused(ShiftbossError):
    """Another rolling restart runs, or this one has ended; `roll_id` is of that one. Nothing was changed."""

    def __init__(self, text: str, roll_id: int) -> None:
        super().__init__(text)
        self.roll_id = roll_id


class NoSuchCommand(NoSuchJob):
    """Nothing was asked of a host under this number, or it is forgotten."""


class HostSilent(ShiftbossError):
    """The agent of the host does not answer, so nothing can be asked of it."""


class InvalidJob(ShiftbossError, ValueError):
    """The job cannot be stored as it was asked for; the text names the field and the fix."""


class NotStorable(InvalidJob, TypeError):
    """A value cannot be held by JSON or by PostgreSQL's jsonb, or is over the configured size."""


class InvalidArguments(ShiftbossError):
    """Stored arguments do not fit the task's signature or type hints; the text names them, never their values."""


class InvalidResult(ShiftbossError):
    """A handler's result is not what the type hint of its function says; the text names the field."""


class KeyHeld(ShiftbossError):
    """Another live job holds the key; `holder` is its id."""

    def __init__(self, key: str, holder: int, advice: str) -> None:
        super().__init__(f"the key {key!r} is held by job {holder}: {advice}")
        self.key = key
        self.holder = holder


class MovedOn(ShiftbossError):
    """The job is no longer in a state that allows this act; `state` is the present one. Nothing was changed."""

    def __init__(self, job_id: int, act: str, state: str) -> None:
        super().__init__(f"job {job_id} has moved on: it is {state}, and a {state} job cannot be changed by {act}")
        self.job_id = job_id
        self.act = act
        self.state = state


class OrderRefused(ShiftbossError):
    """The worker is gone, or ends sooner already than is ordered; `state` says which. Nothing was changed."""

    def __init__(self, worker_id: int, act: str, state: str) -> None:
        if state in ("stopped", "lost"):
            why = f"worker {worker_id} is {state}: nothing can be ordered of it any more"
        else:
            why = f"worker {worker_id} is {state}: {act} does not take that back"
        super().__init__(why)
        self.worker_id = worker_id
        self.act = act
        self.state = state


class NoSuchOperation(ShiftbossError):
    """The audit keeps no operation of this number."""


class CannotUndo(ShiftbossError):
    """What was done cannot be undone, or no longer. Nothing was changed."""


class ReasonNeeded(ShiftbossError, ValueError):
    """The act wants a reason, which the audit keeps."""


class RequestReused(ShiftbossError):
    """The same request id was used by the same person for another act."""


class StillRunning(ShiftbossError, TimeoutError):
    """The job has not ended within the time that the caller would wait. It goes on."""


class InTransaction(ShiftbossError):
    """The call makes no sense inside an open transaction."""


class Busy(ShiftbossError):
    """Another transaction holds what this call needs; nothing was changed, and it can be tried again."""


class UnknownTask(ShiftbossError):
    """The name does not lead to a task."""


class UnknownResource(ShiftbossError):
    """No resource of this name is declared in the executor."""


class SecretUnavailable(ShiftbossError):
    """The secret cannot be had: nobody provides it, or what its provider gave is no secret."""


class LeaseLost(ShiftbossError):
    """The lease is no longer held: expired, superseded, or never this worker's. Nothing was changed."""


class WorkerEnded(ShiftbossError):
    """An in-process worker cannot start: it was ended for good, or a run of before has not ended yet."""


class StoreUnavailable(ShiftbossError):
    """PostgreSQL cannot be reached, or broke the connection, so that the outcome of a call is unknown."""


class SchemaTooOld(ShiftbossError):
    """The database lacks migrations that this version needs."""


class UnsupportedDatabase(ShiftbossError):
    """The database is not PostgreSQL 15 or newer."""
