"""Roles are groups, made and kept up to date by a command."""

import json
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.db import connection

from shiftboss.console.roles import group_name
from shiftboss.permissions import PERMISSIONS, ROLES, VIEW, VIEW_AUDIT, Act
from tests.acts.rights import ROLLS

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C4")]


def command(*words: str) -> str:
    out = StringIO()
    call_command("shiftboss_roles", *words, stdout=out)
    return out.getvalue()


def permissions(role: str) -> set[str]:
    """What the role's group permits."""
    rows = Group.objects.get(name=group_name(role)).permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in rows}


def test_a_group_is_made_of_each_role_and_the_command_says_so() -> None:
    said = command()
    for role, permitted in ROLES.items():
        assert f"Shiftboss {role}: made" in said
        assert permissions(role) == permitted
    assert "+ shiftboss.cancel_job" in said


def test_made_again_nothing_changes_and_the_command_says_so() -> None:
    command()
    before = list(Group.permissions.through.objects.order_by("pk").values())
    assert command().splitlines() == [f"{group_name(role)}: as it should be" for role in ROLES]
    assert list(Group.permissions.through.objects.order_by("pk").values()) == before
    assert Group.objects.count() == len(ROLES)


def test_a_group_gets_what_it_lacks_and_loses_what_it_must_not_have_and_keeps_the_rest() -> None:
    command()
    group = Group.objects.get(name=group_name("viewer"))
    kim = User.objects.create_user("kim", is_staff=True)
    kim.groups.add(group)
    view = Permission.objects.get(codename="view_job")
    cancel = Permission.objects.get(codename="cancel_job")
    foreign = Permission.objects.get(codename="add_user")
    group.permissions.remove(view)
    group.permissions.add(cancel, foreign)

    [viewer, *others] = json.loads(command("--format", "json"))
    assert viewer == {
        "group": "Shiftboss viewer",
        "created": False,
        "added": [VIEW],
        "removed": ["shiftboss.cancel_job"],
        "permissions": [VIEW],
    }
    assert not any(other["added"] or other["removed"] for other in others)
    assert permissions("viewer") == {VIEW, "auth.add_user"}
    assert User.objects.get(pk=kim.pk).has_perm(VIEW)


def test_without_the_permissions_the_command_names_the_fix_and_makes_nothing() -> None:
    Permission.objects.filter(codename="cancel_job").delete()
    with pytest.raises(CommandError, match=r"shiftboss\.cancel_job.*manage\.py migrate --database default"):
        command()
    assert not Group.objects.exists()


def test_before_the_first_migration_the_command_names_the_fix() -> None:
    with connection.cursor() as cursor:
        cursor.execute("alter table auth_permission rename to elsewhere")
    with pytest.raises(CommandError, match=r"manage\.py migrate --database default"):
        command()


def test_every_permission_of_an_act_is_one_that_django_makes() -> None:
    models: list[Any] = list(apps.get_app_config("shiftboss").get_models())
    made = {f"shiftboss.{codename}" for model in models for codename, _ in model._meta.permissions}
    made |= {
        f"shiftboss.{verb}_{model._meta.model_name}"
        for model in models
        for verb in model._meta.default_permissions
    }
    assert set(PERMISSIONS) == set(Act)
    shared = {act for act in Act if act.endswith("_backfill")} | ROLLS
    alone = [permission for act, permission in PERMISSIONS.items() if act not in shared]
    assert len(set(alone)) == len(alone)
    assert {PERMISSIONS[act] for act in ROLLS} == {"shiftboss.roll_pool"}
    assert {PERMISSIONS[act] for act in Act if act.endswith("_backfill")} == {"shiftboss.backfill_task"}
    assert {*PERMISSIONS.values(), VIEW, VIEW_AUDIT, *(one for role in ROLES.values() for one in role)} <= made


def test_roles_grow_from_viewer_to_admin() -> None:
    assert ROLES["viewer"] < ROLES["operator"] < ROLES["admin"]
    assert set(PERMISSIONS.values()) <= ROLES["admin"]
