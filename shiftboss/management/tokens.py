"""What `manage.py shiftboss_tokens` takes and says."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from shiftboss.console import tokens
from shiftboss.permissions import Person

EXAMPLES = """\
examples:
  manage.py shiftboss_tokens create deploy --user ci
  TOKEN=$(manage.py shiftboss_tokens create deploy --user ci --expires-days 30 --quiet)
  manage.py shiftboss_tokens list --format json | jq '.[] | select(.state == "valid")'
  manage.py shiftboss_tokens revoke 7 --reason "the laptop is gone"

A token acts as its user, with the permissions that the user has at that moment. It is shown once.
"""


def declare(parser: ArgumentParser) -> None:
    """Add what can be asked for."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="create | list | revoke")
    create = commands.add_parser("create", help="make a token and show it, once")
    create.add_argument("name", help="what it is for; the audit shows it")
    create.add_argument("--user", required=True, metavar="USER", help="the staff account that it acts as")
    create.add_argument("--expires-days", type=int, default=90, metavar="DAYS", help="default: 90; 0: never")
    create.add_argument("--quiet", action="store_true", help="print the token alone")
    commands.add_parser("list", help="show all, but not what was shown").add_argument(
        "--format", choices=("text", "json"), default="text", help="default: text"
    )
    revoke = commands.add_parser("revoke", help="make a token worthless")
    revoke.add_argument("id", type=int, help="its number, as `list` shows it")
    for acting in (create, revoke):
        acting.add_argument("--reason", default="", help="kept in the audit")


def answer(what: str, given: dict[str, Any]) -> str:
    """Do it and say what came of it. Raises ShiftbossError."""
    return {"create": _create, "list": _list, "revoke": _revoke}[what](given)


def _create(given: dict[str, Any]) -> str:
    days = given["expires_days"] or None
    number, shown = tokens.create(
        given["name"], username=given["user"], by=Person.of_shell(), expires_days=days, reason=given["reason"]
    )
    end = f"expires in {days} days" if days else "never expires"
    return shown if given["quiet"] else f"Token {number} of {given['user']}, {end}; shown once:\n{shown}"


def _list(given: dict[str, Any]) -> str:
    rows = tokens.listed()
    if given["format"] == "json":
        return json.dumps([asdict(row) | {"id": str(row.id)} for row in rows], indent=2, cls=DjangoJSONEncoder)
    lines = [
        f"{row.id}  {row.state}  {row.name}  user {row.user or '(gone)'}  made {row.created_at:%Y-%m-%d}  "
        f"{f'expires {row.expires_at:%Y-%m-%d}' if row.expires_at else 'never expires'}"
        for row in rows
    ]
    return "\n".join(lines) or "no tokens yet"


def _revoke(given: dict[str, Any]) -> str:
    tokens.revoke(given["id"], by=Person.of_shell(), reason=given["reason"])
    return f"Token {given['id']} is revoked"
