"""`shiftboss audit`: who did what, and why."""

import argparse

from shiftboss.cli.acting import person_of
from shiftboss.cli.command import Commands, identity, take_format, take_page, take_person
from shiftboss.cli.output import as_json, table
from shiftboss.cli.project import open_record
from shiftboss.console.stored import as_object
from shiftboss.permissions import VIEW_AUDIT, Act, Via, require
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run as answer

GROUP_EXAMPLES = """\
examples:
  shiftboss audit list
"""

LIST_EXAMPLES = """\
examples:
  shiftboss audit list --limit 10
  shiftboss audit list --job 4711
  shiftboss audit list --queue mail --format json
  shiftboss audit list --by kim --act cancel

Newest first; --act, --via and --by look at the newest 20,000. JOBS is how many the act has changed. The batches of
one bulk act have the same `operation` in the JSON.
"""


def declare(commands: Commands) -> None:
    """Add the commands."""
    group = commands.group("audit", help="See who did what, and why", epilog=GROUP_EXAMPLES)
    listing = group.add("list", list_entries, help="List acts, the newest first", epilog=LIST_EXAMPLES)
    listing.add_argument("--job", type=identity, metavar="ID", help="only those on this job")
    listing.add_argument("--queue", metavar="QUEUE", help="only those on this queue")
    listing.add_argument("--act", choices=[str(act) for act in Act], metavar="ACT", help="only this act")
    listing.add_argument("--via", choices=[str(via) for via in Via], help="only acts that came this way")
    listing.add_argument("--by", metavar="NAME", help="only those of people whose name holds this")
    take_page(listing, limit=audit.PAGE)
    take_person(listing)
    take_format(listing)


def list_entries(given: argparse.Namespace) -> int:
    """Print acts, the newest first."""
    open_record(given)
    person = person_of(given)
    require(VIEW_AUDIT, by=person)
    rows = answer(
        audit.entries(
            authority=person.authority,
            reader=person.as_actor,
            job_id=given.job,
            queue=given.queue,
            act=given.act,
            via=given.via,
            actor=given.by,
            before_id=given.before,
            limit=given.limit,
        )
    )
    if given.format == "json":
        print(as_json({"entries": [as_object(row) for row in rows]}))
        return 0
    heads = ("ID", "AT (UTC)", "WHO", "VIA", "ACT", "JOB", "QUEUE", "JOBS", "REASON")
    cells = [
        (row.id, row.at, row.actor_name, row.via, row.act, row.job_id, row.queue, row.jobs, row.reason)
        for row in rows
    ]
    print(table(heads, cells, right=frozenset({"ID", "JOB", "JOBS"})) if rows else "no acts")
    return 0
