"""Who may see the console, and how people get in and out."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from shiftboss.console.offers import ACTS
from shiftboss.console.urls import urlpatterns

PAGES = [pattern for pattern in urlpatterns if pattern.name not in {"login", "logout"}]


def address(name: str) -> str:
    of_a_job = name == "job" or name in {act.resource for act in ACTS}
    if name == "backfill" or name.startswith("backfill-"):
        return reverse(f"shiftboss:{name}", kwargs={"backfill_id": 7})
    return reverse(f"shiftboss:{name}", kwargs={"job_id": 7} if of_a_job else {})


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_a_stranger_is_sent_to_the_login_from_every_page(client: Client, db: None, name: str) -> None:
    response = client.get(address(name))
    assert response.status_code == 302
    assert response.url == f"{address('login')}?next={address(name)}"  # type: ignore[attr-defined]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_an_account_that_is_not_staff_sees_no_page(client: Client, db: None, name: str) -> None:
    client.force_login(User.objects.create_user("customer", password="x"))
    response = client.get(address(name))
    assert response.status_code == 403
    assert "The console is for staff" in response.content.decode()


@pytest.mark.requirement("C3")
def test_a_refresh_after_the_session_has_ended_moves_the_whole_page(client: Client, db: None) -> None:
    response = client.get(address("jobs") + "?state=running", headers={"HX-Request": "true"})
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
