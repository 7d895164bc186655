"""`shiftboss purge`: order that old history be dropped."""

import argparse
from datetime import date

from shiftboss import acts
from shiftboss.cli.acting import check_consent, check_reason, confirm, permitted, worded
from shiftboss.cli.command import Commands, take_consent, take_format, take_person, take_reason
from shiftboss.cli.output import as_json
from shiftboss.cli.project import open_record
from shiftboss.permissions import Act

EXAMPLES = """\
examples:
  shiftboss purge --before 2026-01-01 --reason "kept for one year only"

Finished jobs, their attempts and events of the days (UTC) before this one are dropped; the maintainer does it
within a minute or two.
"""


def declare(commands: Commands) -> None:
    """Add the command."""
    purging = commands.add("purge", purge, help="Drop the history before a day", epilog=EXAMPLES)
    purging.add_argument("--before", type=_day, metavar="DAY", required=True, help="the first day that is kept")
    take_reason(purging, needed=True)
    take_consent(purging)
    take_person(purging)
    take_format(purging)


def purge(given: argparse.Namespace) -> int:
    """Order that the history before a day be dropped."""
    check_reason(Act.PURGE, given)
    check_consent(Act.PURGE, given)
    open_record(given)
    person = permitted(Act.PURGE, given)
    confirm(Act.PURGE, given, lambda: f"Drop the whole history before {given.before}?")
    worded(lambda: acts.purge(given.before, by=person, reason=given.reason))
    if given.format == "json":
        print(as_json({"act": str(Act.PURGE), "before": given.before.isoformat()}))
    else:
        print(f"the history before {given.before} is going to be dropped")
    return 0


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day: give it as in 2026-01-31") from None
