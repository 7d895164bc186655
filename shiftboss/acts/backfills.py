"""Acts on a backfill."""

from collections.abc import Callable

from shiftboss.acts.performing import LARGEST_ID, Acted, Deed, perform
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue.errors import NoSuchBackfill
from shiftboss.queue.store import backfill
from shiftboss.queue.store.statement import run


def pause_backfill(backfill_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Enqueue no more items of a backfill; jobs that it has go on. One that is paused already stays so."""

    def do() -> Deed:
        new = run(backfill.pause(backfill_id, authority=by.authority))
        return Deed(before={"state": "running" if new else "paused"}, after={"state": "paused"})

    return _on_backfill(Act.PAUSE_BACKFILL, backfill_id, by, reason, request_id, do)


def resume_backfill(backfill_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a backfill go on."""

    def do() -> Deed:
        was_paused = run(backfill.resume(backfill_id, authority=by.authority))
        return Deed(before={"state": "paused" if was_paused else "running"}, after={"state": "running"})

    return _on_backfill(Act.RESUME_BACKFILL, backfill_id, by, reason, request_id, do)


def retry_backfill(backfill_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Run again what failed of a backfill, and nothing else."""

    def do() -> Deed:
        retried = run(backfill.retry(backfill_id, authority=by.authority))
        return Deed(after={"items": retried.anew + retried.reinstated})

    return _on_backfill(Act.RETRY_BACKFILL, backfill_id, by, reason, request_id, do)


def cancel_backfill(backfill_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """End a backfill: no more of its items are enqueued, its jobs are cancelled, running ones asked to end."""

    def do() -> Deed:
        return Deed(after={"items": run(backfill.cancel(backfill_id, authority=by.authority))})

    return _on_backfill(Act.CANCEL_BACKFILL, backfill_id, by, reason, request_id, do)


def _on_backfill(
    act: Act, backfill_id: int, by: Person, reason: str, request_id: str | None, do: Callable[[], Deed]
) -> Acted:
    require(PERMISSIONS[act], by=by)
    if not 0 < backfill_id <= LARGEST_ID:
        raise NoSuchBackfill(f"there is no backfill {backfill_id}")
    asked = {"backfill_id": str(backfill_id)}
    return perform(act, do, by=by, reason=reason, request_id=request_id, asked=asked)
