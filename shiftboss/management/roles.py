"""What `manage.py shiftboss_roles` says."""

import json
from dataclasses import asdict

from shiftboss.console.roles import GroupMade, make_groups

EXAMPLES = """\
examples:
  manage.py shiftboss_roles
  manage.py shiftboss_roles --format json | jq '.[].group'

Run it again after an upgrade: it adds and takes away what has changed, and leaves members and the permissions of
other apps as they are. Who is given a role must be staff too (is_staff), or may do nothing.
"""


def answer(*, as_json: bool) -> str:
    """Make the groups and say what changed. Raises PermissionsMissing."""
    made = make_groups()
    if as_json:
        return json.dumps([asdict(group) for group in made], indent=2)
    return "\n".join(_words(group) for group in made)


def _words(group: GroupMade) -> str:
    changes = [f"+ {name}" for name in group.added] + [f"- {name}" for name in group.removed]
    said = "made" if group.created else "changed" if changes else "as it should be"
    return "\n  ".join([f"{group.group}: {said}", *changes])
