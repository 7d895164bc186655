"""Acts on the history."""

from datetime import date

from shiftboss.acts.performing import Acted, Deed, perform
from shiftboss.permissions import Act, Person
from shiftboss.queue.store import partitions
from shiftboss.queue.store.statement import run


def purge(before: date, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Order that the history before a day (UTC) be dropped; the maintainer does it within a minute or two."""

    def do() -> Deed:
        run(partitions.purge(before, authority=by.authority))
        return Deed()

    asked = {"before": before.isoformat()}
    return perform(Act.PURGE, do, by=by, reason=reason, request_id=request_id, asked=asked)
