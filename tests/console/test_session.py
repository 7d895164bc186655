"""Who may see the console, and how people get in and out."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from shiftboss.console import throttle

OFFICE = "93.184.216.34"


@pytest.fixture
def counted_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The attempts of other tests are forgotten, and these by others; all are within one window."""
    window = time.time() // throttle.WINDOW_SECONDS * throttle.WINDOW_SECONDS
    monkeypatch.setattr(throttle, "time", SimpleNamespace(time=lambda: window + 1))
    cache.clear()
    yield
    cache.clear()


@pytest.mark.requirement("C3")
def test_a_refresh_after_the_session_has_ended_moves_the_whole_page(client: Client, db: None) -> None:
    response = client.get("/jobs/?state=running", headers={"HX-Request": "true"})
    assert response.headers["HX-Redirect"] == "/login/?next=/jobs/%3Fstate%3Drunning"
    assert not response.content


@pytest.mark.requirement("C3")
def test_logging_in_leads_to_the_page_that_was_asked_for_and_logging_out_ends_it(
    client: Client, operator: User
) -> None:
    form = {"username": "kim", "password": "correct horse", "next": "/jobs/"}
    assert client.post("/login/", form).headers["Location"] == "/jobs/"
    assert client.get("/jobs/").status_code == 200
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/jobs/").status_code == 302


@pytest.mark.requirement("C3")
def test_logging_in_without_a_wish_leads_to_the_overview(client: Client, operator: User) -> None:
    form = {"username": "kim", "password": "correct horse", "next": ""}
    assert client.post("/login/", form).headers["Location"] == "/"


@pytest.mark.requirement("C3")
def test_logging_in_leads_to_no_other_site(client: Client, operator: User) -> None:
    form = {"username": "kim", "password": "correct horse", "next": "https://evil.example/"}
    assert client.post("/login/", form).headers["Location"] == "/"


@pytest.mark.requirement("C3")
def test_a_wrong_password_says_so_and_keeps_the_name(client: Client, operator: User) -> None:
    page = client.post("/login/", {"username": "kim", "password": "wrong"}).content.decode()
    assert "do not belong together" in page
    assert 'value="kim"' in page
    assert "wrong" not in page.replace('class="wrong"', "")


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("address", ["/logout/", "/login/"])
def test_a_form_of_the_session_from_before_another_login_says_so(operator: User, address: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    response = client.post(address, {"username": "kim", "password": "correct horse"})
    assert response.status_code == 403
    assert "This form is older than your login" in response.content.decode()
    assert client.get("/jobs/").status_code == 200


@pytest.mark.requirement("C3")
def test_a_member_of_staff_without_the_permission_is_told_which_and_how_to_get_it(
    client: Client, db: None
) -> None:
    client.force_login(User.objects.create_user("lee", password="x", is_staff=True))
    response = client.get("/jobs/")
    assert response.status_code == 403
    page = response.content.decode()
    assert "shiftboss.view_job" in page
    assert "shiftboss_roles" in page


@pytest.mark.requirement("C3")
def test_a_permission_without_staff_is_not_enough(client: Client, operator: User) -> None:
    client.force_login(operator)
    User.objects.filter(pk=operator.pk).update(is_staff=False)
    assert client.get("/jobs/").status_code == 403


def attempt(name: str, password: str, *, address: str = OFFICE) -> int:
    """Try to log in; the status of the answer."""
    form = {"username": name, "password": password, "next": ""}
    return Client(REMOTE_ADDR=address).post("/login/", form).status_code


@pytest.mark.requirement("C3")
def test_a_name_is_tried_only_so_often_from_an_address_and_the_right_password_waits_too(
    counted_anew: None, operator: User
) -> None:
    assert {attempt("kim", "wrong") for _ in range(throttle.ATTEMPTS)} == {200}
    assert attempt("kim", "wrong") == 429
    assert attempt("KIM", "wrong") == 429
    assert attempt("kim", "correct horse") == 429
    assert attempt("kim", "correct horse", address="93.184.216.35") == 302
    assert attempt("lee", "wrong") == 200


@pytest.mark.requirement("C3")
def test_who_has_tried_too_often_is_told_when_to_try_again(
    counted_anew: None, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "ATTEMPTS", 0)
    answer = Client().post("/login/", {"username": "kim", "password": "wrong", "next": "/jobs/"})
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= throttle.WINDOW_SECONDS
    page = answer.content.decode()
    assert "Too many attempts. Try again in" in page
    assert 'value="kim"' in page
    assert 'name="next" value="/jobs/"' in page


@pytest.mark.requirement("C3")
def test_the_right_password_begins_the_count_anew(counted_anew: None, operator: User) -> None:
    for _ in range(2):
        assert {attempt("kim", "wrong") for _ in range(throttle.ATTEMPTS - 1)} == {200}
        assert attempt("kim", "correct horse") == 302


@pytest.mark.requirement("C3")
def test_an_address_does_not_try_one_password_on_all_names(
    counted_anew: None, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "ATTEMPTS_OF_AN_ADDRESS", 3)
    assert [attempt(f"name-{n}", "summer") for n in range(4)] == [200, 200, 200, 429]
    # A proxy of one's own speaks for everybody, the person on call among them.
    assert {attempt(f"name-{n}", "summer", address="10.0.0.1") for n in range(4)} == {200}


@pytest.mark.requirement("C3")
def test_any_name_can_be_tried_and_a_cache_that_keeps_nothing_locks_nobody_out(
    counted_anew: None, operator: User, settings: Any
) -> None:
    assert attempt("x" * 10_000 + " \N{SNOWMAN}\n", "wrong") == 200
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    assert attempt("kim", "correct horse") == 302
