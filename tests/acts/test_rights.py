"""Every act through every door by every kind of person: it is done where it is permitted, and nowhere else.

Whether it was done is asked of the record, not of the answer.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import date, datetime
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from shiftboss import acts, cli
from shiftboss.console import offers, program_acts, roles, tokens
from shiftboss.console.views import backfills, workers
from shiftboss.permissions import Act, Person, Via
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.models import Token
from shiftboss.queue.payload import args_digest
from shiftboss.queue.store import backfill, rolls
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.acts.rights import ABSENT, LOOKS, ON_HOSTS, PEOPLE, RIGHTS, ROLLS, SEE_AUDIT, SEE_JOBS, SEE_TRACEBACKS
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C4", "B15")]

MAKE: dict[str, Callable[[int], Any]] = {
    Act.CANCEL: making.scheduled,
    Act.EXPEDITE: making.retryable,
    Act.RERUN: making.completed,
    Act.REINSTATE: making.quarantined,
    Act.DISCARD: making.quarantined,
    Act.QUARANTINE: making.available,
    Act.REPRIORITISE: making.scheduled,
    Act.RESCHEDULE: making.scheduled,
    Act.EDIT: making.quarantined,
    Act.REVEAL: making.scheduled,
}
"""A job for each act on jobs."""

DUE = "2090-01-31T12:00:00+00:00"
OTHER = '{"args": [7], "kwargs": {}}'
EXTRA: dict[str, dict[str, Any]] = {
    Act.REPRIORITISE: {"priority": 7},
    Act.RESCHEDULE: {"due_at": DUE},
    Act.EDIT: {"args": OTHER, "confirmed": args_digest(OTHER)},
}
IN_API = {**EXTRA, Act.EDIT: {"arguments": json.loads(OTHER)}}
TOKENS = {"token", "revoked"}


ON_BACKFILLS = {
    Act.PAUSE_BACKFILL: "pause",
    Act.RESUME_BACKFILL: "resume",
    Act.RETRY_BACKFILL: "retry",
    Act.CANCEL_BACKFILL: "cancel",
}
"""The acts on backfills, each with its word on the command line and in the API."""


def a_backfill(act: str) -> int:
    """A backfill of one item that the act changes."""
    new = NewBackfill(
        name=act,
        task=making.TASK,
        queue="default",
        priority=0,
        concurrency=1,
        failure_limit=1,
        loss_limit=1,
    )
    number = run(backfill.begin(new, authority=making.SYSTEM))
    run(backfill.add(number, [("a", making.ARGS)], authority=making.SYSTEM))
    if act == Act.RESUME_BACKFILL:
        run(backfill.pause(number, authority=making.SYSTEM))
    if act == Act.RETRY_BACKFILL:
        run(backfill.cancel(number, authority=making.SYSTEM))
    return number


def a_roll() -> int:
    """A rolling restart that runs."""
    begun = run(rolls.begin("default", authority=making.SYSTEM, by="kim", reason="because"))
    assert begun.id
    return begun.id


ON_WORKERS = {Act.DRAIN_WORKER: "drain", Act.STOP_WORKER: "stop"}
"""The orders to workers, each with its word on the command line and in the API."""

ON_QUEUES: dict[Act, tuple[str, dict[str, Any]]] = {
    Act.PAUSE: ("pauses", {}),
    Act.RESUME: ("resumptions", {}),
    Act.LIMIT: ("limits", {"limit": "number", "concurrency": 3}),
}
"""Acts on a queue: the address of each in the console, and what its form asks for besides."""


class Scene:
    """One kind of person, and something that each act can be done to."""

    def __init__(self, who: str) -> None:
        self.who = who
        roles.make_groups()
        self.user: User | None = None if who == "stranger" else self._user(who)
        self.token: str | None = None
        if who in TOKENS:
            number, self.token = tokens.create("deploy", username="pat", by=Person.of_shell())
            if who == "revoked":
                tokens.revoke(number, by=Person.of_shell())
        self.worker = making.a_worker()

    @staticmethod
    def _user(who: str) -> User:
        user = User.objects.create_user("pat", password="x", is_staff=who != "customer")
        if who in {"customer", "inactive", *TOKENS}:
            who, was = "operator", who
            User.objects.filter(pk=user.pk).update(is_active=was != "inactive")
        if who == "superuser":
            User.objects.filter(pk=user.pk).update(is_superuser=True)
        elif who != "staff":
            user.groups.add(Group.objects.get(name=roles.group_name(who)))
        return User.objects.get(pk=user.pk)

    def client(self) -> Client:
        """A browser, or a program with a token."""
        client = Client(headers={"Authorization": f"Bearer {self.token}"} if self.token else None)
        if self.user and not self.token:
            client.force_login(self.user)
        return client

    def thing(self, act: str) -> Any:
        """What the act is to be done to: a job's id, a queue's name, a token's number."""
        if act == SEE_TRACEBACKS:
            return making.quarantined(self.worker).job_id
        if act in LOOKS:
            return making.available(self.worker).job_id
        if act in MAKE:
            return MAKE[act](self.worker).job_id
        if act in ON_BACKFILLS:
            return a_backfill(act)
        if act in ON_WORKERS:
            return self.worker
        if act in ON_HOSTS:
            seen = [{"name": "web", "pool": "default"}]
            fence = making.a_host("web-1", programs=seen, lease_seconds=3600.0)
            if act == Act.RELEASE_PROGRAM:
                making.a_hold(fence)
            return "web" if act.endswith("_program") else "default"
        if act in ROLLS:
            seen = [{"name": "worker-default-1", "pool": "default"}]
            making.a_host("web-1", programs=seen, lease_seconds=3600.0)
            return "default" if act == Act.ROLL_POOL else a_roll()
        if act == Act.RESUME:
            acts.pause("mail", by=person(), reason="to be resumed")
        if act == Act.REVOKE_TOKEN:
            ci, _ = User.objects.get_or_create(username="ci", is_staff=True)
            return tokens.create("other", username=ci.username, by=Person.of_shell())[0]
        return "mail"


def seen(thing: Any) -> list[Any]:
    """All of the record that an act may change."""
    return [
        making.whole(thing) if isinstance(thing, int) else None,
        making.rows("select id, rerun_of from shiftboss_job where rerun_of is not null"),
        making.rows("select name, paused_at, concurrency from shiftboss_queue"),
        making.rows("select before from shiftboss_purge"),
        making.rows("select id, paused_at from shiftboss_backfill"),
        making.rows("select item, job_id, outcome, again from shiftboss_backfill_item"),
        making.rows("select id, ordered, ordered_by from shiftboss_worker"),
        making.rows("select id, verb, program, pool, count, asked_by from shiftboss_command"),
        making.rows("select id, pool, state, asked_by from shiftboss_roll"),
        making.rows("select id, released_as, released_by from shiftboss_hold"),
        list(Token.objects.order_by("pk").values("pk", "revoked_at")),
    ]


def entries() -> int:
    """How many acts the audit keeps."""
    return int(making.scalar("select count(*) from shiftboss_audit"))


# The doors: each gives what it answers to a look, and does an act or does not.


def by_console(scene: Scene, act: str, thing: Any) -> bool | None:
    """Pages and forms."""
    client = scene.client()
    if act == SEE_TRACEBACKS:
        page = client.get(reverse("shiftboss:job", kwargs={"job_id": thing})).content.decode()
        return "Traceback…" in page
    if act in LOOKS:
        return client.get(reverse("shiftboss:jobs" if act == SEE_JOBS else "shiftboss:audit")).status_code == 200
    typed = {"reason": "because", "request_id": a_request(), **EXTRA.get(act, {})}
    if act in ON_QUEUES:
        name, more = ON_QUEUES[Act(act)]
        client.post(reverse(f"shiftboss:{name}"), typed | more | {"queue": thing})
        return None
    if act in ON_BACKFILLS:
        [of] = [one for one in backfills.ACTS if one.act == act]
        client.post(reverse(f"shiftboss:backfill-{of.resource}", kwargs={"backfill_id": thing}), typed)
        return None
    if act in ON_WORKERS:
        [order] = [one for one in workers.ORDERS if one.act == act]
        client.post(reverse(f"shiftboss:worker-{order.resource}", kwargs={"worker_id": thing}), typed)
        return None
    if act == Act.ROLL_POOL:
        client.post(reverse("shiftboss:roll-beginnings"), typed | {"pool": thing})
        return None
    if act == Act.CANCEL_ROLL:
        client.post(reverse("shiftboss:roll-cancellations", kwargs={"roll_id": thing}), typed)
        return None
    if act in ON_HOSTS:
        client.post(on_host(act, thing), typed | ({"count": 1} if act == Act.SCALE_POOL else {}))
        return None
    [one] = [one for one in offers.ACTS if one.act == act]
    client.post(reverse(f"shiftboss:{one.resource}", kwargs={"job_id": thing}), typed)
    return None


def on_host(act: str, thing: str, host: str = "web-1") -> str:
    """The address in the console of an act on a program or a pool of a host."""
    if act == Act.SCALE_POOL:
        return reverse("shiftboss:pool-scales", kwargs={"host": host, "pool": thing})
    names = {one.act: f"program-{one.resource}" for one in program_acts.ACTS} | {Act.TAIL_PROGRAM: "log"}
    return reverse(f"shiftboss:{names[Act(act)]}", kwargs={"host": host, "program": thing})


def by_api(scene: Scene, act: str, thing: Any) -> bool | None:
    """The HTTP API."""
    client = scene.client()
    if act == SEE_TRACEBACKS:
        [attempt] = client.get(f"/api/v1/jobs/{thing}").json().get("attempts", [{}])
        return bool(attempt.get("traceback"))
    if act in LOOKS:
        answers = {client.get("/api/v1/audit").status_code} if act == SEE_AUDIT else set()
        if act == SEE_JOBS:
            of_it = f"backfills/{a_backfill(act)}"
            paths = (
                *("status", "queues", "jobs", f"jobs/{thing}", "backfills", of_it, "openapi.json"),
                *("workers", f"workers/{scene.worker}", "hosts", "rolls"),
            )
            answers = {client.get(f"/api/v1/{path}").status_code for path in paths}
        assert len(answers) == 1, "all of these are for the same people"
        return answers == {200}
    body = {"reason": "because", **IN_API.get(act, {})}
    if act in ON_QUEUES:
        body |= {"queue": thing} | ({"limit": 3} if act == Act.LIMIT else {})
        client.post(f"/api/v1/queues/{act}", body, content_type="application/json")
    elif act in ON_BACKFILLS:
        path = f"/api/v1/backfills/{thing}/{ON_BACKFILLS[Act(act)]}"
        client.post(path, body, content_type="application/json")
    elif act in ON_WORKERS:
        path = f"/api/v1/workers/{thing}/{ON_WORKERS[Act(act)]}"
        client.post(path, body, content_type="application/json")
    elif act in ROLLS:
        more = {"pool": thing} if act == Act.ROLL_POOL else {}
        path = "/api/v1/rolls/begin" if act == Act.ROLL_POOL else f"/api/v1/rolls/{thing}/cancel"
        client.post(path, body | more, content_type="application/json")
    elif act == Act.SCALE_POOL:
        path = f"/api/v1/hosts/web-1/pools/{thing}/scale"
        client.post(path, body | {"count": 1}, content_type="application/json")
    elif act in ON_HOSTS:
        path = f"/api/v1/hosts/web-1/programs/{thing}/{act.partition('_')[0]}"
        client.post(path, body, content_type="application/json")
    else:
        client.post(f"/api/v1/jobs/{thing}/{act}", body, content_type="application/json")
    return None


def by_many(scene: Scene, act: str, thing: Any) -> bool | None:
    """The HTTP API, with many jobs at once."""
    body = {"reason": "because", "jobs": [str(thing), "4611686018427387904"]}
    scene.client().post(f"/api/v1/jobs/many/{act}", body, content_type="application/json")
    return None


def by_cli(scene: Scene, act: str, thing: Any) -> bool | None:
    """The command line, as a user of the project's."""
    return _run(act, thing, ["--as", scene.user.get_username() if scene.user else "nobody"])


def by_shell(act: str, thing: Any) -> bool | None:
    """The command line, as whoever runs it."""
    return _run(act, thing, [])


def _run(act: str, thing: Any, by: list[str]) -> bool | None:
    if act == SEE_JOBS:
        of_it = str(a_backfill(act))
        words = (
            ["jobs", "list"],
            ["jobs", "show", str(thing)],
            ["queues", "list"],
            ["workers", "list"],
            ["backfills", "list"],
            ["backfills", "show", of_it],
        )
        codes = {cli.main([*some, *by]) for some in words}
        assert len(codes) == 1, "all of these are for the same people"
        return codes == {0}
    if act == SEE_TRACEBACKS:
        with redirect_stdout(StringIO()) as out:
            cli.main(["jobs", "show", str(thing), *by])
        return "Traceback…" in out.getvalue()
    if act == SEE_AUDIT:
        return cli.main(["audit", "list", *by]) == 0
    reason = ["--reason", "because"]
    if act == Act.PURGE:
        cli.main(["purge", "--before", "2020-01-01", "--yes", *reason, *by])
        return None
    if act in ON_QUEUES:
        cli.main(["queues", act, thing, *(["3"] if act == Act.LIMIT else []), *reason, *by])
        return None
    if act in ON_BACKFILLS:
        cli.main(["backfills", ON_BACKFILLS[Act(act)], str(thing), "--yes", *reason, *by])
        return None
    if act in ON_WORKERS:
        cli.main(["workers", ON_WORKERS[Act(act)], str(thing), "--yes", *reason, *by])
        return None
    if act == Act.TAIL_PROGRAM:
        cli.main(["logs", thing, "--wait", "0", *by])
        return None
    if act in ROLLS:
        words = [thing] if act == Act.ROLL_POOL else ["--cancel", str(thing)]
        cli.main(["roll", *words, "--wait", "0", *reason, *by])
        return None
    if act in ON_HOSTS:
        words = [act.partition("_")[0], thing, *(["1"] if act == Act.SCALE_POOL else [])]
        cli.main([*words, "--wait", "0", "--yes", *reason, *by])
        return None
    more = {
        Act.REPRIORITISE: ["--priority", "7"],
        Act.RESCHEDULE: ["--due", DUE],
        Act.EDIT: ["--args", OTHER],
    }.get(Act(act), [])
    yes = ["--yes"] if act in (Act.CANCEL, Act.DISCARD) else []
    cli.main(["jobs", act, str(thing), *more, *yes, *reason, *by])
    return None


def by_code(scene: Scene, act: str, thing: Any) -> bool | None:
    """`shiftboss.acts`, on which all doors lead."""
    if scene.user is None or scene.who == "revoked":
        return None
    by = Person.of_user(scene.user, via=Via.CODE)
    if scene.token:
        shown = tokens.person_of(scene.token)
        assert shown is not None
        by = shown
    do: dict[str, Callable[[], Any]] = {
        Act.PURGE: lambda: acts.purge(date(2020, 1, 1), by=by, reason="because"),
        Act.PAUSE: lambda: acts.pause(thing, by=by, reason="because"),
        Act.RESUME: lambda: acts.resume(thing, by=by, reason="because"),
        Act.LIMIT: lambda: acts.limit(thing, by=by, limit=3, reason="because"),
        Act.CREATE_TOKEN: lambda: tokens.create("new", username=scene.user.username, by=by),  # type: ignore[union-attr]
        Act.REVOKE_TOKEN: lambda: tokens.revoke(thing, by=by),
        Act.REPRIORITISE: lambda: acts.reprioritise(thing, by=by, priority=7),
        Act.RESCHEDULE: lambda: acts.reschedule(thing, by=by, due_at=datetime.fromisoformat(DUE)),
        Act.EDIT: lambda: acts.edit(thing, by=by, args=OTHER),
        Act.SCALE_POOL: lambda: acts.scale_pool("web-1", thing, 1, by=by, reason="because"),
        **{
            act: lambda act=act: getattr(acts, act)("web-1", thing, by=by, reason="because")
            for act in ON_HOSTS - {Act.SCALE_POOL}
        },
    }
    with suppress(NotAllowed):
        do.get(act, lambda: getattr(acts, act)(thing, by=by, reason="because"))()
    return None


DOORS: dict[str, Callable[[Scene, str, Any], bool | None]] = {
    "console": by_console,
    "api": by_api,
    "many": by_many,
    "cli": by_cli,
    "code": by_code,
}


@contextmanager
def undone() -> Iterator[None]:
    """What is done inside is undone at its end, so that each act finds the same."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def was_done(act: str, thing: Any, do: Callable[[], bool | None]) -> bool:
    """Whether a door did it, or showed it."""
    before, kept = seen(thing), entries()
    sight = do()
    if act in LOOKS:
        return bool(sight)
    changed = seen(thing) != before
    if act == Act.REVEAL:  # who looks changes nothing but the audit
        changed = entries() > kept
    assert entries() - kept == changed, "what was done is in the audit, and nothing else is"
    return changed


def test_every_act_has_a_line_in_the_table() -> None:
    assert set(RIGHTS) == set(Act) | set(LOOKS)


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("door", DOORS)
def test_a_door_opens_to_those_to_whom_the_table_says_yes(
    door: str, who: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if door == "cli" and who in TOKENS:
        pytest.skip("the command line knows users and no tokens")
    scene = Scene(who)
    expected = {
        # The console knows sessions and no tokens.
        act: RIGHTS[act][who] and not (door == "console" and who in TOKENS)
        for act in RIGHTS
        if act not in ABSENT[door]
    }
    done = {}
    for act in expected:
        with undone():
            thing = scene.thing(act)
            done[act] = was_done(act, thing, lambda act=act, thing=thing: DOORS[door](scene, act, thing))  # type: ignore[misc]
    assert done == expected


def test_whoever_runs_the_command_line_may_do_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene("stranger")
    for act in set(RIGHTS) - ABSENT["cli"]:
        with undone():
            thing = scene.thing(act)
            assert was_done(act, thing, lambda act=act, thing=thing: by_shell(act, thing))  # type: ignore[misc]


def test_what_a_door_lacks_it_lacks_on_purpose() -> None:
    """A door that gets a new act gets a way to try it here."""
    of_console = {one.act for one in (*offers.ACTS, *backfills.ACTS, *workers.ORDERS, *program_acts.ACTS)}
    of_console |= {*ON_QUEUES, *ROLLS, Act.SCALE_POOL, Act.TAIL_PROGRAM}
    assert of_console == set(Act) - ABSENT["console"]

    from shiftboss.console.api.mount import schema

    posts = {ways["post"]["operationId"] for ways in schema("/").get("paths", {}).values() if "post" in ways}
    assert posts == set(Act) - ABSENT["api"] | {f"{act}_many" for act in set(Act) - ABSENT["many"]}
    assert set(Act) - ABSENT["many"] == set(acts.ON_MANY)
