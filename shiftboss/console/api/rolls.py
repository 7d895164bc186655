"""What the record says of rolling restarts."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from shiftboss.acts import LARGEST_ID
from shiftboss.console.api import schemas
from shiftboss.console.api.door import caller
from shiftboss.console.api.reads import answers
from shiftboss.console.record import bounded
from shiftboss.console.rolls import facts, step_facts
from shiftboss.console.views.rolls import MOST, roll_of
from shiftboss.permissions import VIEW, Person, require
from shiftboss.queue.errors import NoSuchRoll
from shiftboss.queue.store import rolls
from shiftboss.queue.store.statement import run

router = Router(tags=["rolls"])


@router.get(
    "/rolls", response=answers(schemas.Rolls), summary="The last rolling restarts", operation_id="list_rolls"
)
def list_rolls(request: HttpRequest) -> Any:
    """At most 50, the newest first."""
    by = _who(request)
    with bounded():
        rows = run(rolls.rolls(authority=by.authority, limit=MOST))
    return {"rolls": [facts(row) for row in rows]}


@router.get(
    "/rolls/{roll_id}",
    response=answers(schemas.RollDetail, 404),
    summary="One rolling restart",
    operation_id="show_roll",
)
def show_roll(request: HttpRequest, roll_id: str) -> Any:
    """A rolling restart with its workers, for 30 days."""
    by, number = _who(request), number_of(roll_id)
    with bounded():
        row = roll_of(number, by=by)
        steps = run(rolls.steps(number, authority=by.authority))
    return facts(row) | {"steps": [step_facts(step) for step in steps]}


def number_of(text: str) -> int:
    """The id in an address. Raises NoSuchRoll for one that no roll can have."""
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > LARGEST_ID:
        raise NoSuchRoll(f"there is no rolling restart {text[:40]!r}")
    return int(text)


def _who(request: HttpRequest) -> Person:
    by = caller(request)
    require(VIEW, by=by)
    return by
