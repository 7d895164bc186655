"""How many jobs of a queue run at once, said by people through every door, and by settings."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse

from shiftboss import acts, cli, conf
from shiftboss.acts import LimitWord
from shiftboss.queue.errors import InvalidJob, NotAllowed, ReasonNeeded
from shiftboss.queue.launch import apply_settings
from shiftboss.queue.store import audit, queues
from shiftboss.queue.store.queues import Limit, Limited
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.console import scenes
from tests.console.callers import Caller, token_of, user
from tests.store.making import SYSTEM, scalar

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("P6", "L6")]


@pytest.fixture
def said(settings: Any) -> Iterator[None]:
    """What the settings say of queues."""
    of_queues = {"mail": {"concurrency": 4}, "ledger": {"sequential": True}, "free": {"max_attempts": 2}}
    settings.SHIFTBOSS = {**getattr(settings, "SHIFTBOSS", {}), "QUEUES": of_queues}
    conf.get.cache_clear()
    yield
    conf.get.cache_clear()


def now(queue: str = "mail") -> tuple[Limit, str | None] | None:
    """The limit of a queue, and who has set it."""
    found = {one.queue: one for one in run(queues.limits(authority=SYSTEM))}
    return (found[queue].limit, found[queue].by) if queue in found else None


def last() -> tuple[str, str | None, Any, Any, Any, str]:
    """The newest act that the audit keeps."""
    entry = run(audit.entries(authority=SYSTEM))[0]
    documents = (json.loads(text) for text in (entry.asked, entry.before, entry.after))
    asked, before, after = documents
    return entry.act, entry.queue, asked, before, after, entry.reason


def test_a_limit_is_kept_with_who_set_it_and_what_it_was() -> None:
    kim = person()
    acted = acts.limit("mail", by=kim, limit=3, reason="small server", request_id=(key := a_request()))
    assert (acted.queue, acted.before, acted.after) == ("mail", "unlimited", "3")
    assert last() == ("limit", "mail", {"limit": 3}, {"state": "unlimited"}, {"state": "3"}, "small server")
    assert now() == (Limit(3), "kim")
    acted = acts.limit("mail", by=kim, limit=LimitWord.SEQUENTIAL, reason="in order")
    assert (acted.before, acted.after, now()) == ("3", "sequential", (Limit(1, sequential=True), "kim"))
    acted = acts.limit("mail", by=kim, limit=LimitWord.NONE, reason="big server")
    assert (acted.before, acted.after, now()) == ("sequential", "unlimited", (Limit(), "kim"))
    # Said again it is as it was; the request that had been done is not done again.
    acted = acts.limit("mail", by=kim, limit=LimitWord.NONE, reason="big server")
    assert (acted.before, acted.after) == ("unlimited", "unlimited")
    with transaction.atomic():
        assert acts.limit("mail", by=kim, limit=3, reason="small server", request_id=key).repeated
    assert now() == (Limit(), "kim")


def test_settings_hold_where_nobody_has_said_otherwise_and_again_once_it_is_reset(said: None) -> None:
    acts.limit("ledger", by=person(), limit=2, reason="for a day")
    apply_settings()
    assert now("mail") == (Limit(4), None)
    assert now("ledger") == (Limit(2), "kim")
    assert now("free") is None
    acted = acts.limit("ledger", by=person(), limit=LimitWord.SETTINGS, reason="the day is over")
    assert (acted.before, acted.after, now("ledger")) == ("2", "sequential", (Limit(1, sequential=True), None))
    assert last()[2] == {"limit": "settings"}
    acts.limit("other", by=person(), limit=1, reason="for a day")
    acts.limit("other", by=person(), limit=LimitWord.SETTINGS, reason="the day is over")
    assert now("other") is None


def test_a_limit_that_cannot_be_and_one_without_a_reason_are_refused() -> None:
    for given in (0, 10_001, -1):
        with pytest.raises(InvalidJob, match="from 1 to 10000"):
            acts.limit("mail", by=person(), limit=given, reason="because")
    with pytest.raises(ReasonNeeded):
        acts.limit("mail", by=person(), limit=3, reason=" ")
    with pytest.raises(NotAllowed, match="limit_queue"):
        acts.limit("mail", by=person(may=()), limit=3, reason="because")
    assert now() is None


def test_the_api_limits_a_queue_and_shows_it() -> None:
    caller = Caller(token=token_of(user("pat")))
    for given, after in ((3, "3"), ("sequential", "sequential"), ("none", "unlimited"), ("settings", "unlimited")):
        body = {"queue": "mail", "limit": given, "reason": "because"}
        assert caller.post("queues/limit", body).json()["after"] == after
        shown = {one["queue"]: one["limit"] for one in caller.get("queues").json()["queues"]}
        if given == "settings":
            assert shown == {}
        else:
            expected = {"3": (3, False), "sequential": (1, True), "unlimited": (None, False)}[after]
            by = "pat (token deploy)"
            assert shown["mail"] == {
                "concurrency": expected[0],
                "sequential": expected[1],
                "set_by": by,
                "taken": 0,
            }
    for wrong in (0, True, "3", "many", None, 2.5):
        assert (
            caller.post("queues/limit", {"queue": "mail", "limit": wrong, "reason": "because"}).status_code == 422
        )
    assert caller.post("queues/limit", {"queue": "mail", "reason": "because"}).status_code == 422


def test_the_command_line_limits_a_queue_and_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    why = ["--reason", "because"]
    said = []
    for word in ("3", "--sequential", "--none", "--reset"):
        assert cli.main(["queues", "limit", "mail", word, *why]) == 0
        said.append(capsys.readouterr().out.strip())
    assert said == [
        "queue mail: limit 3 (was unlimited)",
        "queue mail: limit sequential (was 3)",
        "queue mail: limit unlimited (was sequential)",
        "queue mail: limit unlimited, as the settings say",
    ]
    assert cli.main(["queues", "limit", "mail", "2", *why, "--format", "json"]) == 0
    outcome = {"queue": "mail", "before": "unlimited", "after": "2"}
    assert json.loads(capsys.readouterr().out) == {"act": "limit", "queues": [outcome]}
    assert cli.main(["queues", "list"]) == 0
    assert "0 of 2" in capsys.readouterr().out
    for wrong in (["mail", "0", *why], ["mail", "3"]):
        assert cli.main(["queues", "limit", *wrong]) == 2
    for wrong in (["mail", *why], ["mail", "3", "--none", *why]):
        with pytest.raises(SystemExit, match="2"):
            cli.main(["queues", "limit", *wrong])
    assert now() == (Limit(2), scalar("select limited_by from shiftboss_queue"))


def test_the_page_limits_a_queue_and_shows_it(client: Any) -> None:
    client.force_login(user("pat"))
    address = reverse("shiftboss:limits")
    typed = {"queue": "mail", "reason": "because"}
    for form, expected in (
        ({"limit": "number", "concurrency": 3}, Limit(3)),
        ({"limit": "sequential", "concurrency": ""}, Limit(1, sequential=True)),
        ({"limit": "none"}, Limit()),
    ):
        assert client.post(address, typed | form).status_code == 303
        assert now() == (expected, "pat")
    for wrong in ({"limit": "number"}, {"limit": "number", "concurrency": 0}, {"limit": "many"}, {}):
        assert client.post(address, typed | wrong).status_code == 422
    assert client.post(address, {"queue": "mail", "limit": "none"}).status_code == 422
    assert client.post(address, typed | {"limit": "number", "concurrency": 7}).status_code == 303
    page = client.get(reverse("shiftboss:queues")).content.decode()
    assert "0 of 7 slots taken" in page
    assert "7 at once" in page
    page = client.get(reverse("shiftboss:audit")).content.decode()
    assert "no limit → 7 at once" in page
    assert client.post(address, typed | {"limit": "settings"}).status_code == 303
    assert "7 at once → no limit, as the settings say" in client.get(reverse("shiftboss:audit")).content.decode()


def test_the_page_refuses_a_number_beside_another_choice(client: Any) -> None:
    client.force_login(user("pat"))
    typed = {"queue": "mail", "reason": "because", "limit": "sequential", "concurrency": 3}
    response = client.post(reverse("shiftboss:limits"), typed)
    assert response.status_code == 422
    assert "A number is for “at most so many jobs at once”" in response.content.decode()
    assert now() is None


@pytest.mark.usefixtures("said")
def test_the_form_says_what_holds_now_and_what_the_settings_say(client: Any) -> None:
    client.force_login(user("pat"))

    def form(queue: str = "mail") -> str:
        return " ".join(client.get(reverse("shiftboss:limits"), {"queue": queue}).content.decode().split())

    assert "Now: no limit." in form("other")
    assert "what the settings say: no limit<" in form("other")
    acts.limit("mail", by=person(), limit=LimitWord.SETTINGS, reason="because")
    assert "Now: 4 at once, as the settings say." in form()
    acts.limit("mail", by=person(), limit=2, reason="because")
    assert "Now: 2 at once, set by <bdi>kim</bdi>." in form()
    assert "what the settings say: 4 at once<" in form()
    assert 'placeholder="2"' in form()
    acts.limit("mail", by=person(), limit=LimitWord.SEQUENTIAL, reason="because")
    assert "Now: one at a time in strict order, set by" in form()


def test_a_limit_is_seen_wherever_its_jobs_wait(client: Any) -> None:
    client.force_login(user("pat"))
    [mail, other] = [scenes.job(queue=queue) for queue in ("mail", "default")]

    def page(job_id: int) -> str:
        text = client.get(reverse("shiftboss:job", args=[job_id])).content.decode()
        return " ".join(re.sub(r"<[^>]*>", "", text).split())

    def overview() -> list[str]:
        text = client.get(reverse("shiftboss:overview")).content.decode()
        return re.findall(r'<a class="tag" href="/queues/">([^<]*)</a>', text)

    assert overview() == []
    acts.limit("mail", by=person(), limit=3, reason="because")
    assert "3 at once, 0 taken" in page(mail)
    assert "at once" not in page(other)
    assert overview() == ["limit 3"]
    acts.limit("mail", by=person(), limit=LimitWord.SEQUENTIAL, reason="because")
    assert "one at a time in strict order, 0 taken" in page(mail)
    assert overview() == ["one at a time"]
    acts.limit("mail", by=person(), limit=LimitWord.NONE, reason="because")
    assert "in strict order" not in page(mail)
    assert overview() == []


def test_the_command_line_tells_a_lifted_limit_from_none_and_status_shows_limits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def sh(*words: str) -> list[str]:
        assert cli.main([*words]) == 0
        return capsys.readouterr().out.splitlines()

    scenes.job(queue="mail")
    assert sh("queues", "list")[1].split()[-2:] == ["-", "-"]
    acts.limit("mail", by=person(), limit=LimitWord.NONE, reason="because")
    assert sh("queues", "list")[1].split()[-2:] == ["lifted", "-"]
    assert "  mail  available 1" in sh("status")[1]
    acts.limit("mail", by=person(), limit=3, reason="because")
    assert sh("status")[1].startswith("  mail  limit 0 of 3  available 1")
    acts.limit("mail", by=person(), limit=LimitWord.SEQUENTIAL, reason="because")
    assert sh("status")[1].startswith("  mail  limit 0 of 1 sequential  available 1")
    assert cli.main(["queues", "limit", "mail", "--reset", "--reason", "because"]) == 0
    assert capsys.readouterr().out == "queue mail: limit unlimited, as the settings say (was sequential)\n"


def test_a_queue_with_a_limit_is_shown_without_any_job() -> None:
    acts.limit("mail", by=person(), limit=3, reason="because")
    assert run(queues.limits(authority=SYSTEM)) == [Limited("mail", Limit(3), "kim", 0)]
