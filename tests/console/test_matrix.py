"""Every address of the console against every kind of person: what is shown, and what a form that is sent changes.

Whether something was done is asked of the record, not of the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from shiftboss import acts
from shiftboss.console import offers, program_acts, roles
from shiftboss.console.urls import urlpatterns
from shiftboss.console.views import backfills, many, quarantine, workers
from shiftboss.permissions import Act
from shiftboss.queue.states import QuarantineReason
from tests.acts import test_rights
from tests.acts.people import a_request, person
from tests.console import scenes
from tests.console.rights import ACTS, NEEDS, PEOPLE, RIGHTS
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "C4")]

LONG_SECONDS = 3600.0
"""The lease of an agent that answers for as long as a test takes, on the slowest of machines."""

LOOKED_AT = {"shiftboss_sample", "shiftboss_histogram", "shiftboss_mark"}
"""What whoever looks may write: it says nothing that the rest of the record does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What an address is opened for: the arguments of its path, its query, and what its form says."""

    path: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    typed: dict[str, Any] = field(default_factory=dict)


Subject = Callable[[test_rights.Scene], Opened]


def of_a_job(act: Act) -> Subject:
    return lambda scene: Opened(path={"job_id": scene.thing(act)}, typed=test_rights.EXTRA.get(act, {}))


def of_jobs(act: Act) -> Subject:
    return lambda scene: Opened(query={"job": [scene.thing(act), scene.thing(act)]})


def of_a_reason(act: Act) -> Subject:
    def held(scene: test_rights.Scene) -> Opened:
        scene.thing(act)
        return Opened(query={"reason": QuarantineReason.FAILURES_EXHAUSTED.value})

    return held


def of_a_backfill(act: Act) -> Subject:
    return lambda scene: Opened(path={"backfill_id": test_rights.a_backfill(act)})


def of_a_worker(scene: test_rights.Scene) -> Opened:
    return Opened(path={"worker_id": scene.worker})


def of_a_queue(act: Act) -> Subject:
    def queue(scene: test_rights.Scene) -> Opened:
        name = scene.thing(act)
        return Opened(query={"queue": name}, typed={"queue": name, **test_rights.ON_QUEUES[act][1]})

    return queue


def of_what_waits(scene: test_rights.Scene) -> Opened:
    job_id = making.available(scene.worker).job_id
    return Opened(query={"queue": "default"}, typed={"expected": 1, "newest": job_id})


def of_a_program(name: str, state: str = "RUNNING") -> Subject:
    def program(scene: test_rights.Scene) -> Opened:
        seen = [{"name": "web", "pool": None, "state": state}]
        fence = making.a_host(f"of-{name}", programs=seen, lease_seconds=LONG_SECONDS)
        if name == "releases":
            making.a_hold(fence, host=f"of-{name}")
        return Opened(path={"host": f"of-{name}", "program": "web"})

    return program


def of_a_pool(scene: test_rights.Scene, host: str = "of-pool") -> Opened:
    seen = [{"name": "worker-default-1", "pool": "default"}]
    making.a_host(host, programs=seen, lease_seconds=LONG_SECONDS)
    return Opened(path={"host": host, "pool": "default"}, typed={"count": 1})


def of_a_command(scene: test_rights.Scene) -> Opened:
    making.a_host("of-command", programs=[{"name": "web", "pool": None}], lease_seconds=LONG_SECONDS)
    done = acts.start_program("of-command", "web", by=person())
    return Opened(path={"command_id": done.command_id})


def of_a_pool_to_roll(scene: test_rights.Scene) -> Opened:
    of_a_pool(scene, "to-roll")
    return Opened(typed={"pool": "default"})


def of_a_roll(scene: test_rights.Scene) -> Opened:
    if running := making.rows("select id from shiftboss_roll where state = 'running'"):
        return Opened(path={"roll_id": running[0][0]})
    of_a_pool(scene, "of-roll")
    return Opened(path={"roll_id": test_rights.a_roll()})


def of_an_operation(scene: test_rights.Scene) -> Opened:
    done = acts.on_many(Act.QUARANTINE, [scene.thing(Act.QUARANTINE)], by=person(), reason="by mistake")
    return Opened(path={"operation": done.operation})


STATES_OF_PROGRAMS = {Act.START_PROGRAM: "STOPPED", Act.KILL_PROGRAM: "STOPPING"}
"""Of programs to which these acts can be done."""

SUBJECTS: dict[str, Subject] = {
    "job": of_a_job(Act.CANCEL),
    "worker": of_a_worker,
    "backfill": of_a_backfill(Act.PAUSE_BACKFILL),
    "program": of_a_program("page"),
    "log": of_a_program("log"),
    "pool-scales": of_a_pool,
    "command": of_a_command,
    "roll-beginnings": of_a_pool_to_roll,
    "roll": of_a_roll,
    "roll-cancellations": of_a_roll,
    "queue": of_a_queue(Act.PAUSE),
    "queue-cancellations": of_what_waits,
    "undoings": of_an_operation,
    **{one.resource: of_a_job(one.act) for one in offers.ACTS},
    **{f"many-{one.resource}": of_jobs(one.act) for one in many.ACTS},
    **{f"held-{one.resource}": of_a_reason(one.act) for one in quarantine.ACTS},
    **{f"backfill-{one.resource}": of_a_backfill(one.act) for one in backfills.ACTS},
    **{f"worker-{one.resource}": of_a_worker for one in workers.ORDERS},
    **{
        f"program-{one.resource}": of_a_program(one.resource, STATES_OF_PROGRAMS.get(one.act, "RUNNING"))
        for one in program_acts.ACTS
    },
    **{name: of_a_queue(act) for act, (name, _) in test_rights.ON_QUEUES.items()},
}


def visitors() -> dict[str, Client]:
    """A browser for each kind of person."""
    found = {}
    for who in PEOPLE:
        found[who] = Client()
        if who == "anonymous":
            continue
        user = User.objects.create_user(who, password="x", is_staff=who != "customer")
        if who != "staff":
            role = "operator" if who == "customer" else who
            user.groups.add(Group.objects.get(name=roles.group_name(role)))
        found[who].force_login(user)
    return found


@pytest.fixture
def scene(db: None) -> test_rights.Scene:
    """What addresses are opened for."""
    return test_rights.Scene("stranger")


def opened_for(scene: test_rights.Scene, name: str, *clients: Client) -> tuple[str, dict[str, Any]]:
    """An address, and what its form says."""
    opened = SUBJECTS.get(name, lambda _: Opened())(scene)
    if name == "edits":  # arguments are shown to whoever has asked for them
        for client in clients:
            typed = {"reason": "because", "request_id": a_request()}
            client.post(reverse("shiftboss:reveals", kwargs=opened.path), typed)
    query = urlencode(opened.query, doseq=True)
    address = reverse(f"shiftboss:{name}", kwargs=opened.path) + (f"?{query}" if query else "")
    return address, {"reason": "because", "request_id": a_request(), **opened.typed}


def missing(who: str, name: str) -> str:
    """What a page of a refusal names: whoever sees nothing is told of that first."""
    if who == "customer":
        return "The console is for staff"
    return "shiftboss.view_job" if who == "staff" and name in ACTS else f"shiftboss.{NEEDS[name]}"


def tables() -> list[str]:
    """Those that hold the record."""
    named = making.rows(
        "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = current_schema() and starts_with(c.relname, 'shiftboss_') and c.relkind in ('r', 'p')"
        " and not c.relispartition"
    )
    return sorted({name for (name,) in named} - LOOKED_AT)


def record() -> list[Any]:
    """A digest of all rows of each table."""
    digests = (
        f"select '{name}', md5(string_agg(t::text, ',' order by t::text)) from \"{name}\" t" for name in tables()
    )
    return making.rows(" union all ".join(digests))


def test_every_address_has_a_line_in_the_table() -> None:
    assert {pattern.name for pattern in urlpatterns} == set(RIGHTS)


def test_what_is_compared_is_the_record() -> None:
    assert {"shiftboss_job", "shiftboss_finished", "shiftboss_queue", "shiftboss_audit"} <= set(tables())


def test_an_address_is_shown_to_those_to_whom_the_table_says_yes(scene: test_rights.Scene) -> None:
    visiting = visitors()
    addresses = {name: opened_for(scene, name, *visiting.values())[0] for name in RIGHTS}
    with scenes.maintained():
        answers = {
            name: {who: shown(visiting[who], name, who, address) for who in PEOPLE}
            for name, address in addresses.items()
        }
    assert answers == RIGHTS


def shown(client: Client, name: str, who: str, address: str) -> str:
    """What the table would say of this answer."""
    answer = client.get(address)
    if answer.status_code == 302:
        login, _, query = answer.headers["Location"].partition("?")
        assert (login, parse_qs(query)) == ("/login/", {"next": [address]})
        return "login"
    if answer.status_code == 403:
        assert missing(who, name) in answer.content.decode(), (name, who)
    # A logout is for forms alone, also of those who are not logged in.
    return {200: "yes", 403: ".", 405: "yes"}.get(answer.status_code, str(answer.status_code))


def test_a_form_changes_nothing_for_those_to_whom_the_table_does_not_say_yes(scene: test_rights.Scene) -> None:
    visiting = visitors()
    forms = {name: opened_for(scene, name, *visiting.values()) for name in RIGHTS}
    before = record()
    for name, (address, typed) in forms.items():
        for who, client in visiting.items():
            if not (name in ACTS and RIGHTS[name][who] == "yes"):
                client.post(address, typed)
    assert record() == before


@pytest.mark.parametrize("who", ["operator", "admin"])
def test_a_form_changes_the_record_for_those_to_whom_the_table_says_yes(
    scene: test_rights.Scene, who: str
) -> None:
    client = visitors()[who]
    may = [name for name in ACTS if RIGHTS[name][who] == "yes"]
    changed = []
    for name in may:
        with test_rights.undone():
            address, typed = opened_for(scene, name, client)
            before = record()
            client.post(address, typed)
            if record() != before:
                changed.append(name)
    assert changed == may


def test_acts_are_for_nobody_else() -> None:
    """Whom the test before this one does not try."""
    assert {who for name in ACTS for who in PEOPLE if RIGHTS[name][who] == "yes"} == {"operator", "admin"}


def test_no_form_is_believed_that_another_site_could_have_sent(scene: test_rights.Scene) -> None:
    client = visitors()["admin"]
    for name in ACTS | {"login", "logout"}:
        with test_rights.undone():
            client.handler.enforce_csrf_checks = False
            address, typed = opened_for(scene, name, client)
            client.handler.enforce_csrf_checks = True
            before = record()
            answer = client.post(address, typed)
            assert answer.status_code == 403, name
            assert "Nothing was done" in answer.content.decode(), name
            assert record() == before, name
    assert client.get(reverse("shiftboss:jobs")).status_code == 200


def test_whoever_is_not_active_any_more_is_sent_to_the_login(scene: test_rights.Scene) -> None:
    client = visitors()["admin"]
    addresses = {name: opened_for(scene, name, client)[0] for name in set(RIGHTS) - {"login", "logout"}}
    User.objects.update(is_active=False)
    assert {name: client.get(address).status_code for name, address in addresses.items()} == dict.fromkeys(
        addresses, 302
    )
