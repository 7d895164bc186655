"""Who may call the API: people with a session, programs with a token, and nobody else."""

import json
import logging
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from shiftboss.console import tokens
from shiftboss.permissions import VIEW, Person
from shiftboss.queue.authority import System
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.models import Token
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.console.callers import BASE, Caller, problem, token_of, told, user
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C5")]


def act_on(caller: Caller, **headers: str) -> tuple[Any, int]:
    """What a caller is answered who wants to cancel a job, and the job."""
    [job_id] = making.enqueued()
    return caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}, **headers), job_id


# Sessions


def test_a_stranger_is_told_how_to_make_itself_known() -> None:
    response, job_id = act_on(Caller())
    problem(response, 401, "unauthenticated")
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="shiftboss"'
    assert making.state(job_id) == "available"
    for path in ("status", "jobs", "jobs/1", "queues", "audit", "openapi.json"):
        problem(Caller().get(path), 401, "unauthenticated")


def test_a_session_acts_with_its_csrf_token_only() -> None:
    kim = user("kim")
    caller = Caller(session=kim, csrf=True)
    response, job_id = act_on(caller)
    problem(response, 403, "csrf_failed")
    assert making.state(job_id) == "available"
    told(caller.get("jobs"))

    token = "a" * 32
    caller._client.cookies["csrftoken"] = token
    response, job_id = act_on(caller, **{"X-CSRFToken": token})
    told(response)
    assert making.state(job_id) == "cancelled"
    [entry] = run(audit.entries(authority=System(), job_id=job_id))
    assert (entry.actor_kind, entry.actor_id, entry.actor_name, entry.via) == ("user", str(kim.pk), "kim", "api")


def test_a_session_of_a_foreign_page_does_not_act() -> None:
    caller = Caller(session=user("kim"), csrf=True)
    caller._client.cookies["csrftoken"] = "a" * 32
    response, job_id = act_on(caller, **{"X-CSRFToken": "a" * 32, "Origin": "https://evil.example"})
    problem(response, 403, "csrf_failed")
    assert making.state(job_id) == "available"


def test_a_token_needs_no_csrf_token_even_beside_a_session() -> None:
    kim = user("kim")
    response, _ = act_on(Caller(session=kim, token=token_of(kim), csrf=True))
    told(response)


def test_a_token_that_is_not_valid_is_not_made_up_for_by_a_session() -> None:
    response, job_id = act_on(Caller(session=user("kim"), token="sb_wrong"))
    problem(response, 401, "unauthenticated")
    assert making.state(job_id) == "available"


@pytest.mark.parametrize("how", [{"is_staff": False}, {"is_staff": False, "is_superuser": True}])
def test_only_staff_may_do_anything(how: dict[str, bool]) -> None:
    response, job_id = act_on(Caller(session=user("customer", **how)))
    problem(response, 403, "not_allowed")
    assert making.state(job_id) == "available"
    problem(Caller(session=User.objects.get(username="customer")).get("jobs"), 403, "not_allowed")


# Tokens


def test_a_token_acts_as_its_user_and_only_its_digest_is_kept() -> None:
    shown = token_of(user("ci"))
    assert re.fullmatch(r"sb_[A-Za-z0-9_-]{43}", shown)
    [row] = Token.objects.all()
    assert shown not in str(vars(row))
    assert re.fullmatch(r"[0-9a-f]{64}", row.digest)
    response, job_id = act_on(Caller(token=shown))
    told(response)
    assert making.state(job_id) == "cancelled"
    assert token_of(user("other")) != shown


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer sb_", "Basic c2JfOg==", "bearer sb_" + "A" * 43, "Bearer \xff", "Token x"],
)
def test_what_is_no_token_is_no_token(header: str) -> None:
    token_of(user("ci"))
    response = Client().get(BASE + "jobs", headers={"Authorization": header})
    problem(response, 401, "unauthenticated")  # type: ignore[arg-type]


def test_the_digest_of_a_token_is_no_token() -> None:
    token_of(user("ci"))
    digest = Token.objects.get().digest
    problem(Caller(token=digest).get("jobs"), 401, "unauthenticated")
    problem(Caller(token="sb_" + digest).get("jobs"), 401, "unauthenticated")


def test_a_revoked_token_is_worthless_at_once() -> None:
    caller = Caller(token=token_of(user("ci")))
    told(caller.get("jobs"))
    tokens.revoke(Token.objects.get().pk, by=Person.of_shell())
    response = caller.get("jobs")
    problem(response, 401, "unauthenticated")
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="shiftboss", error="invalid_token"'


def test_an_expired_token_is_worthless() -> None:
    caller = Caller(token=token_of(user("ci")))
    told(caller.get("jobs"))
    row = Token.objects.get()
    assert row.expires_at is not None
    assert timedelta(days=89) < row.expires_at - row.created_at <= timedelta(days=91)
    Token.objects.update(expires_at=row.created_at)
    problem(caller.get("jobs"), 401, "unauthenticated")


@pytest.mark.parametrize("change", [{"is_active": False}, "gone"])
def test_a_token_ends_with_its_user(change: Any) -> None:
    ci = user("ci")
    caller = Caller(token=token_of(ci))
    told(caller.get("jobs"))
    if change == "gone":
        ci.delete()
    else:
        User.objects.update(**change)
    problem(caller.get("jobs"), 401, "unauthenticated")


def test_a_token_loses_what_its_user_loses() -> None:
    ci = user("ci")
    caller = Caller(token=token_of(ci))
    ci.groups.clear()
    problem(caller.get("jobs"), 403, "not_allowed")
    assert act_on(caller)[0].status_code == 403
    User.objects.update(is_staff=False, is_superuser=True)
    problem(caller.get("jobs"), 403, "not_allowed")


@pytest.mark.requirement("L24")
def test_a_token_is_neither_logged_nor_echoed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ci = user("ci")
    shown, wrong = token_of(ci), "sb_" + "Z" * 43
    answers = [
        Caller(token=shown).get("jobs"),
        Caller(token=shown).get("jobs/9"),
        Caller(token=wrong).get("jobs"),
        Caller(token=shown).post("jobs/1/cancel", b"{"),
        act_on(Caller(token=shown))[0],
    ]
    said = caplog.text + "".join(one.content.decode() + str(dict(one.headers)) for one in answers)
    kept = str(making.rows("select * from shiftboss_audit")) + str(list(Token.objects.values()))
    for secret in (shown, shown[3:], wrong):
        assert secret not in said
        assert secret not in kept


# Making and revoking them


def command(*words: str) -> str:
    out = StringIO()
    call_command("shiftboss_tokens", *words, stdout=out)
    return out.getvalue()


def test_the_command_makes_lists_and_revokes_tokens_and_the_audit_tells_of_it() -> None:
    user("ci")
    last = making.scalar("select coalesce(max(id), 0) from shiftboss_audit")
    said = command("create", "deploy", "--user", "ci", "--expires-days", "30", "--reason", "the new pipeline")
    [shown] = re.findall(r"^sb_\S+$", said, re.MULTILINE)
    assert "expires in 30 days; shown once" in said
    told(Caller(token=shown).get("jobs"))

    [row] = json.loads(command("list", "--format", "json"))
    assert (row["name"], row["user"], row["state"]) == ("deploy", "ci", "valid")
    assert "digest" not in row
    assert "deploy  user ci" in command("list")
    assert "is revoked" in command("revoke", row["id"])
    problem(Caller(token=shown).get("jobs"), 401, "unauthenticated")
    assert json.loads(command("list", "--format", "json"))[0]["state"] == "revoked"
    with pytest.raises(CommandError, match="revoked already"):
        command("revoke", row["id"])

    kept = [entry for entry in run(audit.entries(authority=System())) if entry.id > last][::-1]
    assert [(entry.act, entry.actor_kind, entry.reason) for entry in kept] == [
        ("create_token", "os", "the new pipeline"),
        ("revoke_token", "os", ""),
    ]
    assert json.loads(kept[0].asked) == {"name": "deploy", "user": "ci", "expires_days": 30}


def test_a_token_may_be_printed_alone_and_never_expire() -> None:
    user("ci")
    shown = command("create", "deploy", "--user", "ci", "--expires-days", "0", "--quiet").strip()
    told(Caller(token=shown).get("jobs"))
    assert Token.objects.get().expires_at is None
    assert "never expires" in command("list")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create", "x", "--user", "nobody"), "no user 'nobody'"),
        (("create", "x", "--user", "customer"), "not an active staff account"),
        (("create", "", "--user", "ci"), "1 to 100 printable"),
        (("create", "a\nb", "--user", "ci"), "1 to 100 printable"),
        (("create", "x", "--user", "ci", "--expires-days", "-1"), "expires after 1 to"),
        (("create", "x", "--user", "ci", "--expires-days", "999999999"), "expires after 1 to"),
        (("revoke", "77"), "no token 77"),
        (("revoke", "9223372036854775808"), "no token 9223372036854775808"),
    ],
)
def test_what_the_command_cannot_do_it_says(words: tuple[str, ...], why: str) -> None:
    user("ci")
    user("customer", None, is_staff=False)
    with pytest.raises(CommandError, match=why):
        command(*words)
    assert Token.objects.count() == 0


def test_a_token_whose_user_may_do_nothing_any_more_is_listed_so() -> None:
    ci = user("ci")
    token_of(ci)
    User.objects.update(is_staff=False)
    assert [row.state for row in tokens.listed()] == ["powerless"]
    ci.delete()
    [row] = tokens.listed()
    assert (row.state, row.user) == ("powerless", None)


@pytest.mark.requirement("C4")
def test_a_person_makes_and_revokes_tokens_with_the_permission_only() -> None:
    user("ci", "viewer")
    with pytest.raises(NotAllowed, match="add_token"):
        tokens.create("x", username="ci", by=person(may=["shiftboss.cancel_job", VIEW]))
    assert Token.objects.count() == 0
    number, _ = tokens.create("x", username="ci", by=person(may=["shiftboss.add_token", VIEW]))
    with pytest.raises(NotAllowed, match="change_token"):
        tokens.revoke(number, by=person(may=["shiftboss.add_token"]))
    tokens.revoke(number, by=person(may=["shiftboss.change_token"]))


def test_who_may_not_make_tokens_does_not_learn_who_exists() -> None:
    with pytest.raises(NotAllowed):
        tokens.create("x", username="nobody", by=person(may=[]))


def test_nobody_makes_a_token_that_may_do_more_than_they() -> None:
    user("root", None, is_superuser=True)
    user("ci", "operator")
    by = person(may=["shiftboss.add_token", VIEW])
    for name in ("root", "ci"):
        with pytest.raises(NotAllowed):
            tokens.create("x", username=name, by=by)
    assert Token.objects.count() == 0


def test_a_token_that_cannot_be_audited_is_not_made() -> None:
    from django.db import DatabaseError

    user("ci")
    making.execute("alter table shiftboss_audit add constraint out_of_space check (false) not valid")
    with pytest.raises(DatabaseError):
        tokens.create("x", username="ci", by=Person.of_shell())
    assert Token.objects.count() == 0
