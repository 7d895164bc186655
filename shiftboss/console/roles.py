"""Roles as groups of Django's: what `acts.ROLES` permits, given to people by membership."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import connections, router, transaction

from shiftboss.permissions import ROLES
from shiftboss.queue.errors import ShiftbossError

APP = "shiftboss"


class PermissionsMissing(ShiftbossError):
    """Django has not made the permissions yet; the text says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMade:
    """A group as it is now, and what was done to it."""

    group: str
    created: bool
    added: list[str]
    removed: list[str]
    permissions: list[str]


def group_name(role: str) -> str:
    """The name of a role's group."""
    return f"Shiftboss {role}"


def make_groups() -> list[GroupMade]:
    """Make the groups, or give them what their roles permit now. Other apps' permissions in them are left alone.

    Raises PermissionsMissing.
    """
    alias = router.db_for_write(Group)
    tables = connections[alias].introspection.table_names()
    found = Permission.objects.using(alias).filter(content_type__app_label=APP)
    existing = {
        f"{APP}.{permission.codename}": permission
        for permission in (found if Permission._meta.db_table in tables else ())
    }
    missing = sorted(frozenset().union(*ROLES.values()) - existing.keys())
    if missing:
        raise PermissionsMissing(
            f"{len(missing)} of Shiftboss's permissions do not exist in the database {alias!r} yet (such as "
            f"{missing[0]}): run `manage.py migrate --database {alias}`, which makes them after the migrations"
        )
    with transaction.atomic(using=alias):
        return [_made(role, permitted, existing, alias) for role, permitted in ROLES.items()]


def _made(role: str, permitted: frozenset[str], existing: dict[str, Any], alias: str) -> GroupMade:
    group, created = Group.objects.using(alias).get_or_create(name=group_name(role))
    ours = group.permissions.filter(content_type__app_label=APP)
    has = {f"{APP}.{codename}" for codename in ours.values_list("codename", flat=True)}
    added, removed = sorted(permitted - has), sorted(has - permitted)
    group.permissions.add(*(existing[name] for name in added))
    group.permissions.remove(*(existing[name] for name in removed))
    return GroupMade(
        group=group.name, created=created, added=added, removed=removed, permissions=sorted(permitted)
    )
