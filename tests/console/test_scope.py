"""Staff who are narrowed to queues or owners: what every page and every address of the API shows and lets them do.

The jobs outside of their scope bear a word that nothing else has: it may stand on no page.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client, override_settings
from django.urls import reverse

from shiftboss import Owner, Scoped, System, acts, conf
from shiftboss.console import charts, roles, tokens, whole
from shiftboss.console.urls import urlpatterns
from shiftboss.console.views import many, quarantine
from shiftboss.permissions import Act
from shiftboss.queue.authority import Staff
from shiftboss.queue.errors import OutOfScope
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import backfill
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "C4", "N4")]

HERE = "tests.console.test_scope"
HIDDEN = "zyzzyva"
"""In the queue, the owner, the task, the arguments and the error of every job outside."""

SCOPES: dict[str, Staff] = {
    "queue": Scoped(queues=["mail"]),
    "owner": Scoped(owners=["kim"]),
    "both": Scoped(queues=["mail"], owners=["kim"]),
    "nothing": Scoped(queues=[]),
    "all": System(),
}
NARROWED = [name for name in SCOPES if name != "all"]


def scope_of(user: User) -> Staff:
    """As the user is called."""
    return SCOPES[user.username]


def broken(user: User) -> Staff:
    """A hook with a mistake."""
    raise LookupError("the table of teams is gone")


def no_answer(user: User) -> Any:
    """A hook that forgot somebody."""
    return None


@pytest.fixture
def hook() -> Iterator[Callable[[str], None]]:
    """Names the project's hook in the settings."""
    with override_settings():
        from django.conf import settings

        def use(name: str) -> None:
            settings.SHIFTBOSS = {**getattr(settings, "SHIFTBOSS", {}), "STAFF_SCOPE": f"{HERE}.{name}"}
            conf.get.cache_clear()

        use("scope_of")
        yield use
    conf.get.cache_clear()


class World:
    """Jobs, acts and workers inside and outside of the scopes."""

    def __init__(self) -> None:
        self.ids: dict[str, dict[str, int]] = {}
        self.worker = scenes.worker("mail", HIDDEN)
        self.own_worker = scenes.worker("mail")
        for where, (queue, owner, task) in {
            "inside": ("mail", "kim", scenes.TASK),
            "outside": (HIDDEN, HIDDEN, f"shop.tasks.{HIDDEN}"),
        }.items():
            self.ids[where] = self._jobs(queue, Owner(owner), task, where)
        acts.pause("mail", by=person("lee"), reason="the mail is down")
        acts.pause(HIDDEN, by=person("lee"), reason=f"the {HIDDEN} is down")
        acts.limit(HIDDEN, by=person("lee"), limit=3, reason="slowly")
        for job_id in self.ids["outside"]["waiting"], self.ids["inside"]["waiting"]:
            acts.reprioritise(job_id, by=person("lee"), priority=5, reason=f"of {job_id}")
        self.operation = acts.on_many(
            Act.QUARANTINE, [self.ids["outside"]["extra"]], by=person("lee"), reason=f"{HIDDEN} by mistake"
        ).operation
        scenes.sample_all()

    def _jobs(self, queue: str, owner: Owner, task: str, where: str) -> dict[str, int]:
        def made(**more: Any) -> int:
            args = f'{{"args": ["{HIDDEN if where == "outside" else "x"}"], "kwargs": {{}}}}'
            return scenes.job(task, queue=queue, authority=owner, args=args, **more)

        found = {}
        for state in ("failed", "completed", "running"):
            found[state] = made(max_attempts=1)
            [job] = scenes.claimed(self.worker, queue=queue, tasks=[task])
            if state == "failed":
                scenes.failed([job], self.worker, message=f"no {queue}")
            if state == "completed":
                scenes.completed([job], self.worker)
        found |= {"waiting": made(), "extra": made()}
        new = backfill.NewBackfill(
            name=f"fill {queue}",
            task=task,
            queue=queue,
            priority=0,
            concurrency=1,
            failure_limit=1,
            loss_limit=1,
        )
        found["backfill"] = int(run(backfill.begin(new, authority=owner)))
        return found


@pytest.fixture
def world(db: None, hook: Any) -> World:
    """The record that is looked at."""
    roles.make_groups()
    for name in SCOPES:
        user = User.objects.create_user(name, password="x", is_staff=True)
        user.groups.add(Group.objects.get(name=roles.group_name("admin")))
    whole.forget()
    charts.forget()
    return World()


def browser(name: str) -> Client:
    """Somebody who has logged in."""
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


LISTS = ["overview", "jobs", "quarantine", "queues", "workers", "backfills", "audit"]
QUERIES = {
    "jobs": [
        "",
        "?state=quarantined",
        "?state=completed",
        "?state=running&columns=id,owner,task,error",
        "?q=task:*",
    ],
    "overview": ["", "?span=3h"],
}


@pytest.mark.parametrize("name", NARROWED)
def test_no_list_shows_what_is_outside(name: str, world: World) -> None:
    seen, everything = browser(name), browser("all")
    for page in LISTS:
        for query in QUERIES.get(page, [""]):
            address = reverse(f"shiftboss:{page}") + query
            for headers in ({}, {"HX-Request": "true"}):
                shown = seen.get(address, headers=headers)
                assert shown.status_code == 200, address
                assert HIDDEN not in shown.content.decode(), address
            assert HIDDEN in everything.get(address).content.decode(), address


@pytest.mark.parametrize("name", NARROWED)
def test_pages_of_what_is_outside_are_not_there(name: str, world: World) -> None:
    client, outside = browser(name), world.ids["outside"]
    for job_id in (outside[state] for state in ("failed", "completed", "running", "waiting")):
        gone = client.get(reverse("shiftboss:job", kwargs={"job_id": job_id}))
        assert gone.status_code == 404
        assert HIDDEN not in gone.content.decode()
    filled = client.get(reverse("shiftboss:backfill", kwargs={"backfill_id": outside["backfill"]}))
    assert filled.status_code == 404
    queue = client.get(reverse("shiftboss:queue"), {"queue": HIDDEN})
    assert queue.status_code == 403
    assert "within your scope" in queue.content.decode()
    undoing = client.get(reverse("shiftboss:undoings", kwargs={"operation": world.operation}))
    assert undoing.status_code == 404
    charted = client.get(reverse("shiftboss:overview"), {"queue": HIDDEN})
    assert charted.status_code == 403


def test_what_is_inside_is_shown_with_its_acts(world: World) -> None:
    for name in ("queue", "owner", "both"):
        client = browser(name)
        for job_id in world.ids["inside"].values():
            if job_id != world.ids["inside"]["backfill"]:
                shown = client.get(reverse("shiftboss:job", kwargs={"job_id": job_id}))
                assert shown.status_code == 200
        address = reverse("shiftboss:job", kwargs={"job_id": world.ids["inside"]["waiting"]})
        assert (
            f'href="{address}"' in client.get(reverse("shiftboss:jobs"), {"state": "available"}).content.decode()
        )
        # What somebody has done to it is told there.
        assert f"of {world.ids['inside']['waiting']}" in client.get(address).content.decode()
    overview = browser("queue").get(reverse("shiftboss:overview")).content.decode()
    assert "You see the queues mail" in overview
    assert "Queue mail is paused" in overview or "paused" in overview


def test_who_sees_some_owners_is_told_that_the_figures_are_not_theirs(world: World) -> None:
    for name in ("owner", "both"):
        for figures in ("overview", "queues"):
            told = browser(name).get(reverse(f"shiftboss:{figures}")).content.decode()
            assert "How queues stand is told to who sees all jobs of a queue" in told
            assert "nothing waits" not in told
        page = browser(name).get(reverse("shiftboss:jobs")).content.decode()
        assert "how the queues stand is not told to you" in page
        # No count stands on the tabs: those of the record are of all owners.
        tabs = re.findall(r'<nav class="tabs".*?</nav>', page, re.DOTALL)
        assert tabs
        assert not re.search(r"\d", re.sub(r'href="[^"]*"', "", tabs[0]))


JOB_ACTS = [one for one in urlpatterns if "<int:job_id>" in str(one.pattern) and one.name != "job"]
TYPED = {
    "reason": "r",
    "priority": 3,
    "due_at": "2030-01-01T12:00",
    "revision": "same",
    "args": '{"args": [], "kwargs": {}}',
}


@pytest.mark.parametrize("name", NARROWED)
def test_no_act_of_a_page_reaches_outside(name: str, world: World) -> None:
    client, outside = browser(name), world.ids["outside"]
    jobs = [outside[state] for state in ("failed", "completed", "running", "waiting")]
    before = untouched()
    for one in JOB_ACTS:
        for job_id in jobs:
            address = reverse(f"shiftboss:{one.name}", kwargs={"job_id": job_id})
            # To edit one reveals first.
            assert client.get(address, follow=True).status_code == 404, address
            sent = client.post(address, {**TYPED, "request_id": a_request()}, follow=True)
            assert sent.status_code == 404, address
    for act in many.ACTS:
        address = reverse(f"shiftboss:many-{act.resource}") + "?" + "&".join(f"job={job_id}" for job_id in jobs)
        assert HIDDEN not in client.get(address).content.decode()
        client.post(address, {"reason": "r", "request_id": a_request()})
    for act in quarantine.ACTS:
        for reason in QuarantineReason:
            address = reverse(f"shiftboss:held-{act.resource}") + f"?reason={reason}&task=shop.tasks.{HIDDEN}"
            client.post(address, {"reason": "r", "request_id": a_request()})
    for page in ("pauses", "resumptions", "limits"):
        address = reverse(f"shiftboss:{page}")
        assert client.get(address, {"queue": HIDDEN}).status_code == 403
        typed = {"queue": HIDDEN, "reason": "r", "limit": "number", "concurrency": 1, "request_id": a_request()}
        client.post(address, typed)
    client.post(
        reverse("shiftboss:queue-cancellations") + f"?queue={HIDDEN}",
        {"reason": "r", "expected": 9, "newest": 2**40, "request_id": a_request()},
    )
    for page in ("backfill-pauses", "backfill-cancellations", "backfill-retries", "backfill-resumptions"):
        address = reverse(f"shiftboss:{page}", kwargs={"backfill_id": outside["backfill"]})
        assert client.post(address, {"reason": "r", "request_id": a_request()}).status_code == 404
    for page in ("worker-drains", "worker-stops"):
        address = reverse(f"shiftboss:{page}", kwargs={"worker_id": world.worker})
        client.post(address, {"reason": "r", "request_id": a_request()})
    client.post(
        reverse("shiftboss:undoings", kwargs={"operation": world.operation}),
        {"reason": "r", "request_id": a_request()},
    )
    assert untouched() == before


def untouched() -> list[Any]:
    """All that lies outside, and what is ordered of its queue and of the worker that serves it."""
    return [
        making.rows(f"select row_to_json(t)::text from {table} t where queue = '{HIDDEN}' order by 1")
        for table in ("shiftboss_job", "shiftboss_finished", "shiftboss_backfill")
    ] + [
        making.rows(f"select row_to_json(t)::text from shiftboss_queue t where name = '{HIDDEN}'"),
        making.rows("select id, ordered from shiftboss_worker order by id"),
    ]


def test_acts_within_the_scope_are_done(world: World) -> None:
    client, inside = browser("queue"), world.ids["inside"]
    address = reverse("shiftboss:cancellations", kwargs={"job_id": inside["waiting"]})
    assert client.post(address, {"reason": "r", "request_id": a_request()}).status_code == 303
    assert making.state(inside["waiting"]) == "cancelled"
    resumed = client.post(reverse("shiftboss:resumptions"), {"queue": "mail", "request_id": a_request()})
    assert resumed.status_code == 303
    assert making.rows("select paused_at from shiftboss_queue where name = 'mail'") == [(None,)]
    ordered = reverse("shiftboss:worker-drains", kwargs={"worker_id": world.own_worker})
    assert client.post(ordered, {"reason": "r", "request_id": a_request()}).status_code == 303
    assert making.scalar("select ordered from shiftboss_worker where id = %s", world.own_worker) == "drain"


@pytest.mark.parametrize("name", NARROWED)
def test_the_api_shows_nothing_of_what_is_outside(name: str, world: World) -> None:
    caller = Caller(token=token_of(User.objects.get(username=name)))
    for path in ("status", "queues", "workers", f"workers/{world.worker}", "jobs", "backfills", "audit"):
        shown = caller.get(path)
        assert shown.status_code == 200, (path, shown.content)
        assert HIDDEN not in shown.content.decode(), path
    outside = world.ids["outside"]
    before = untouched()
    for job_id in (outside[state] for state in ("failed", "completed", "running", "waiting")):
        problem(caller.get(f"jobs/{job_id}"), 404, "no_such_job")
        for act in ("cancel", "expedite", "rerun", "discard", "quarantine", "reveal"):
            problem(caller.post(f"jobs/{job_id}/{act}", {"reason": "r"}), 404, "no_such_job")
    told(caller.post("jobs/many/cancel", {"jobs": [str(outside["waiting"])], "reason": "r"}))
    problem(caller.post("queues/pause", {"queue": HIDDEN, "reason": "r"}), 403, "not_allowed")
    problem(caller.post(f"workers/{world.worker}/stop", {"reason": "r"}), 403, "not_allowed")
    assert untouched() == before


@pytest.mark.parametrize("name", ["broken", "no_answer"])
def test_who_has_no_scope_sees_nothing(name: str, hook: Callable[[str], None], world: World) -> None:
    hook(name)
    client = browser("all")
    for page in LISTS:
        refused = client.get(reverse(f"shiftboss:{page}"))
        assert refused.status_code == 403
        assert "table of teams" not in refused.content.decode()


def test_tokens_are_made_by_who_sees_everything(world: World) -> None:
    with pytest.raises(OutOfScope, match="queues mail"):
        tokens.create("x", username="all", by=person(authority=Scoped(queues=["mail"])))
