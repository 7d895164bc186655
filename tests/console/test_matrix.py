"""Every address of the console against every kind of person: what is shown, and what a form that is sent changes.

Whether something was done is asked of the record, not of the answer.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from shiftboss.console import offers
from shiftboss.console.urls import urlpatterns
from shiftboss.console.views import backfills, workers
from shiftboss.permissions import Act
from tests.acts import test_rights
from tests.acts.people import a_request
from tests.console import scenes
from tests.console.rights import ACTS, NEEDS, PEOPLE, RIGHTS
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "C4")]

LOOKED_AT = {"shiftboss_sample", "shiftboss_histogram", "shiftboss_mark"}
"""What whoever looks may write: it says nothing that the rest of the record does not."""

looked_at_each_time = pytest.fixture(autouse=True)(scenes.looked_at_each_time)

Subject = Callable[[test_rights.Scene], tuple[dict[str, Any], dict[str, Any]]]
"""What an address is opened for: the arguments of its path, and what its form or query says."""


def of_a_job(act: Act, **typed: Any) -> Subject:
    return lambda scene: ({"job_id": scene.thing(act)}, {**test_rights.EXTRA.get(act, {}), **typed})


def of_a_backfill(act: Act) -> Subject:
    return lambda scene: ({"backfill_id": test_rights.a_backfill(act)}, {})


def of_a_queue(act: Act) -> Subject:
    return lambda scene: ({}, {"queue": scene.thing(act), **test_rights.ON_QUEUES[act][1]})


SUBJECTS: dict[str, Subject] = {
    "job": lambda scene: ({"job_id": making.available(scene.worker).job_id}, {}),
    "worker": lambda scene: ({"worker_id": scene.worker}, {}),
    "backfill": of_a_backfill(Act.PAUSE_BACKFILL),
    **{one.resource: of_a_job(one.act) for one in offers.ACTS},
    **{f"backfill-{one.resource}": of_a_backfill(one.act) for one in backfills.ACTS},
    **{f"worker-{one.resource}": lambda scene: ({"worker_id": scene.worker}, {}) for one in workers.ORDERS},
    **{name: of_a_queue(act) for act, (name, _) in test_rights.ON_QUEUES.items()},
}


def scene_of(who: str) -> test_rights.Scene:
    return test_rights.Scene("stranger" if who == "anonymous" else who)


def opened_for(scene: test_rights.Scene, name: str, client: Client) -> tuple[str, dict[str, Any]]:
    """An address, and what its form says."""
    path, typed = SUBJECTS[name](scene) if name in SUBJECTS else ({}, {})
    if name == "edits":  # arguments are shown to whoever has asked for them
        typed_before = {"reason": "because", "request_id": a_request()}
        client.post(reverse("shiftboss:reveals", kwargs=path), typed_before)
    return reverse(f"shiftboss:{name}", kwargs=path), typed


def missing(who: str, name: str) -> str:
    """What a page of a refusal names: whoever sees nothing is told of that first."""
    if who == "customer":
        return "The console is for staff"
    return "shiftboss.view_job" if who == "staff" and name in ACTS else f"shiftboss.{NEEDS[name]}"


def record() -> dict[str, list[Any]]:
    """Every row that there is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = current_schema() and c.relname like 'shiftboss\\_%' and c.relkind in ('r', 'p')"
            " and not c.relispartition"
        )
        tables = {name for (name,) in cursor.fetchall()} - LOOKED_AT
        return {name: making.rows(f'select t::text from "{name}" t order by 1') for name in sorted(tables)}


def test_every_address_has_a_line_in_the_table() -> None:
    assert {pattern.name for pattern in urlpatterns} == set(RIGHTS)


def test_what_is_compared_is_the_record() -> None:
    assert {"shiftboss_job", "shiftboss_finished", "shiftboss_queue", "shiftboss_audit"} <= set(record())


@pytest.mark.parametrize("who", PEOPLE)
def test_an_address_is_shown_to_those_to_whom_the_table_says_yes(who: str) -> None:
    scene = scene_of(who)
    answers = {}
    for name in RIGHTS:
        with test_rights.undone():
            client = scene.client()
            address, typed = opened_for(scene, name, client)
            answer = client.get(address, typed)
            said = {200: "yes", 403: ".", 405: "yes"}.get(answer.status_code, str(answer.status_code))
            if answer.status_code == 302:
                login, _, query = answer.headers["Location"].partition("?")
                assert (login, parse_qs(query)) == ("/login/", {"next": [answer.wsgi_request.get_full_path()]})
                said = "login"
            answers[name] = said
            if said == ".":
                assert missing(who, name) in answer.content.decode(), name
    assert answers == {name: RIGHTS[name][who] for name in RIGHTS}


@pytest.mark.parametrize("who", PEOPLE)
def test_a_form_changes_the_record_for_those_to_whom_the_table_says_yes(who: str) -> None:
    scene = scene_of(who)
    changed = {}
    for name in RIGHTS:
        with test_rights.undone():
            client = scene.client()
            address, typed = opened_for(scene, name, client)
            before = record()
            client.post(address, {"reason": "because", "request_id": a_request(), **typed})
            changed[name] = record() != before
    assert changed == {name: name in ACTS and RIGHTS[name][who] == "yes" for name in RIGHTS}


def test_no_form_is_believed_that_another_site_could_have_sent() -> None:
    scene = scene_of("admin")
    client = scene.client()
    for name in ACTS | {"login", "logout"}:
        with test_rights.undone():
            client.handler.enforce_csrf_checks = False
            address, typed = opened_for(scene, name, client)
            client.handler.enforce_csrf_checks = True
            before = record()
            answer = client.post(address, {"reason": "because", "request_id": a_request(), **typed})
            assert answer.status_code == 403, name
            assert "Nothing was done" in answer.content.decode(), name
            assert record() == before, name
    assert client.get(reverse("shiftboss:jobs")).status_code == 200


def test_whoever_is_not_active_any_more_is_sent_to_the_login() -> None:
    scene = scene_of("admin")
    client = scene.client()
    User.objects.update(is_active=False)
    for name in set(RIGHTS) - {"login", "logout"}:
        address, typed = opened_for(scene, name, client)
        assert client.get(address, typed).status_code == 302, name
