"""An executor of plain functions, which starts in a fraction of the time that Django takes.

    python -P -m tests.faults.plain ORDERS

Its handlers log their attempts as `tests.faults.audit` reads them.
"""

import os
import signal
import sys
import time
from typing import Any

from shiftboss.queue.clients.memory import Functions
from shiftboss.queue.runtime.executor import main
from tests.logbook import attempt_of, opened, witnessed, write

BACKOFF_SECONDS = 0.05


def is_first(context: Any) -> bool:
    """Whether no handler has begun this job before: a worker may have given it back without that."""
    try:
        os.close(os.open(os.path.join(os.environ["TEST_LOG"], f"{context.job_id}.begun"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def work(context: Any, seconds: float = 0.0) -> None:
    """Take so long."""
    with witnessed(context) as tick:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            tick()
            time.sleep(min(0.05, seconds))


def wait(context: Any, gate: str) -> None:
    """Wait for a gate, in the first run."""
    with witnessed(context) as tick:
        first = is_first(context)
        while first and not opened(gate):
            tick()
            time.sleep(0.02)


def listen(context: Any) -> None:
    """Wait to be asked to end, in the first run."""
    with witnessed(context):
        first = is_first(context)
        while first:
            context.raise_if_cancelled()
            time.sleep(0.01)


def fail(context: Any) -> None:
    """Raise in the first run."""
    with witnessed(context):
        if is_first(context):
            raise ValueError("not yet")


def put_off(context: Any) -> None:
    """Snooze in the first run."""
    with witnessed(context):
        if is_first(context):
            context.snooze(0.05)


def give_up(context: Any) -> None:
    """Discard the job."""
    with witnessed(context):
        context.discard("of no use any more")


def die(context: Any) -> None:
    """End the process in the first run."""
    with witnessed(context):
        if is_first(context):
            os._exit(3)


def end_the_keeper(context: Any, seconds: float) -> None:
    """Take the whole worker down, each time after so long."""
    with witnessed(context):
        time.sleep(seconds)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)


def tell(context: Any) -> None:
    """Tell all that there is to tell, and what an earlier attempt has left."""
    who = attempt_of(context)
    with witnessed(context):
        write(f"found-{context.checkpoint.data}", who)
        context.progress(1, total=2)
        context.event("half-way")
        context.checkpoint.save("half-way")
        write("saved", who)


def functions() -> Functions:
    """All of them, each under its module and name."""
    made = Functions(backoff_seconds=BACKOFF_SECONDS, backoff_cap_seconds=BACKOFF_SECONDS)
    for function in (work, wait, listen, fail, put_off, give_up, die, end_the_keeper, tell):
        made.add(function, name=f"tests.faults.plain.{function.__name__}", takes_context=True)
    return made


if __name__ == "__main__":
    main(sys.argv[1], functions)
