"""Orders to a worker: drain, stop."""

from shiftboss.acts.performing import LARGEST_ID, Acted, Deed, perform
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue.errors import Busy, NoSuchWorker, OrderRefused
from shiftboss.queue.store import workers
from shiftboss.queue.store.statement import run

WORDS = {Act.DRAIN_WORKER: "drain", Act.STOP_WORKER: "stop"}
"""What each order says to the worker."""

BECOMES = {"drain": "draining", "stop": "stopping"}
"""What a worker is, in the words of `Acted`, once that is ordered of it."""


def drain_worker(worker_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Order a worker to claim no more and to end once its runs have, within its `drain_seconds`.

    One that was ordered so already goes on. Raises NoSuchWorker, and OrderRefused where it is gone or stops
    already.
    """
    return _order(Act.DRAIN_WORKER, worker_id, by, reason, request_id)


def stop_worker(worker_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Order a worker to end now: what runs is cut off and given back unharmed. Also where it drains already.

    Raises NoSuchWorker, and OrderRefused where it is gone.
    """
    return _order(Act.STOP_WORKER, worker_id, by, reason, request_id)


def _order(act: Act, worker_id: int, by: Person, reason: str, request_id: str | None) -> Acted:
    require(PERMISSIONS[act], by=by)
    if not 0 < worker_id <= LARGEST_ID:
        raise NoSuchWorker(f"there is no worker {worker_id}")
    word = WORDS[act]

    def do() -> Deed:
        was = run(workers.order(worker_id, authority=by.authority, word=word, by=by.name))
        if was is None:
            raise NoSuchWorker(f"there is no worker {worker_id}, or it was forgotten a day after its end")
        if not was.alive:
            raise OrderRefused(worker_id, act, "stopped" if was.state == "stopped" else "lost")
        before = BECOMES.get(was.ordered or "", was.state)
        if not was.given and was.ordered != word:
            if was.ordered != "stop":
                raise Busy(f"worker {worker_id} has changed just now; try again")
            raise OrderRefused(worker_id, act, before)
        facts = {"pool": was.pool, "host": was.host, "pid": was.pid}
        return Deed(before={"state": before, **facts}, after={"state": BECOMES[word]})

    asked = {"worker_id": str(worker_id)}
    return perform(act, do, by=by, reason=reason, request_id=request_id, asked=asked)
