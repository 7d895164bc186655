"""Acts on a queue: pause, resume, limit."""

from enum import StrEnum

from shiftboss import conf
from shiftboss.acts.performing import Acted, Deed, perform
from shiftboss.permissions import Act, Person
from shiftboss.queue.store import queues
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.statement import run


def pause(queue: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Stop a queue from being claimed. A queue that is paused already stays so, with the first reason."""

    def do() -> Deed:
        new = run(queues.pause(queue, authority=by.authority, by=by.name, reason=reason.strip()))
        return Deed(before={"state": "running" if new else "paused"}, after={"state": "paused"})

    return perform(Act.PAUSE, do, by=by, reason=reason, request_id=request_id, queue=queue)


def resume(queue: str, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a queue be claimed again."""

    def do() -> Deed:
        was_paused = run(queues.resume(queue, authority=by.authority))
        return Deed(before={"state": "paused" if was_paused else "running"}, after={"state": "running"})

    return perform(Act.RESUME, do, by=by, reason=reason, request_id=request_id, queue=queue)


class LimitWord(StrEnum):
    """A limit that is no number: none at all, one job at a time in strict order, or what the settings say."""

    NONE = "none"
    SEQUENTIAL = "sequential"
    SETTINGS = "settings"


def limit(queue: str, *, by: Person, limit: int | LimitWord, reason: str, request_id: str | None = None) -> Acted:
    """Say how many jobs of a queue run at once over all workers; stands against the settings until it is reset.

    `before` and `after` are the number, `sequential` or `unlimited`. Jobs that run already go on, and count.
    """
    given = _limit(queue, limit)
    reset = limit == LimitWord.SETTINGS

    def do() -> Deed:
        verb = queues.limit(queue, given, authority=by.authority, by=None if reset else by.name, reset=reset)
        before = run(verb) or given
        return Deed(before={"state": before.word}, after={"state": given.word})

    asked = {"limit": limit}
    return perform(Act.LIMIT, do, by=by, reason=reason, request_id=request_id, queue=queue, asked=asked)


def _limit(queue: str, limit: int | LimitWord) -> Limit:
    """Raises InvalidJob for a number that cannot be one."""
    match limit:
        case LimitWord.NONE:
            return Limit()
        case LimitWord.SEQUENTIAL:
            return Limit(1, sequential=True)
        case LimitWord.SETTINGS:
            return Limit.of(conf.get().queues.get(queue))
    return Limit(limit)
