"""The content security policy, and a host project that the console must not disturb."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from tests.console import scenes

pytestmark = pytest.mark.requirement("C3", "C7")

PAGES = [
    "/",
    "/jobs/",
    "/jobs/?state=quarantined",
    "/jobs/{job}/",
    "/jobs/999999/",
    "/jobs/{job}/discards/",
    "/jobs/{job}/reruns/",
    "/queues/",
    "/jobs/many/discards/?job={job}",
    "/quarantine/",
    "/quarantine/discards/?reason=failures_exhausted",
    "/queues/pauses/?queue=default",
    "/queues/one/?queue=default",
    "/workers/",
    "/backfills/",
    "/audit/",
    "/login/",
]


@pytest.mark.parametrize("address", PAGES)
def test_every_page_forbids_what_it_does_not_need(browser: Client, address: str) -> None:
    address = address.format(job=scenes.quarantined_job(scenes.worker()))
    policy = browser.get(address).headers["Content-Security-Policy"]
    assert policy.split("; ") == [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]


@pytest.mark.parametrize("address", PAGES)
def test_no_page_holds_an_inline_script_or_style(browser: Client, address: str) -> None:
    page = browser.get(address.format(job=scenes.quarantined_job(scenes.worker()))).content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|hx-on|hx-vals", page)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))


@override_settings(ROOT_URLCONF="tests.console.prefixed_urls")
def test_under_a_prefix_every_address_stays_under_it(client: Client, operator: User) -> None:
    assert client.get("/ops/queue/").headers["Location"] == "/ops/queue/login/?next=/ops/queue/"
    client.force_login(operator)
    job_id = scenes.quarantined_job(scenes.worker())
    for address in (
        "",
        "jobs/",
        "jobs/?state=quarantined",
        f"jobs/{job_id}/",
        "queues/",
        "audit/",
        f"jobs/{job_id}/discards/",
    ):
        response = client.get(f"/ops/queue/{address}")
        assert response.status_code == 200
        page = response.content.decode()
        links = re.findall(r'(?:href|action|hx-get)="(/[^"]*)"', page)
        assert links
        assert all(link.startswith(("/ops/queue/", "/static/")) for link in links)
    response = client.post(f"/ops/queue/jobs/{job_id}/discards/", {"reason": "r"})
    assert response.headers["Location"] == f"/ops/queue/jobs/{job_id}/"
    assert f'Job <a href="/ops/queue/jobs/{job_id}/">' in client.get(f"/ops/queue/jobs/{job_id}/").content.decode()


@override_settings(ROOT_URLCONF="tests.console.prefixed_urls")
def test_the_host_projects_own_pages_are_left_alone(client: Client, db: None) -> None:
    assert "Content-Security-Policy" not in client.get("/shop/").headers
    assert "Content-Security-Policy" not in client.get("/nowhere/").headers
    assert "Content-Security-Policy" in client.get("/ops/queue/login/").headers


@override_settings(USE_THOUSAND_SEPARATOR=True)
def test_a_project_that_groups_thousands_gets_whole_ids(browser: Client) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("alter table shiftboss_job alter column id restart with 1234567")
    job_id = scenes.job()
    assert job_id == 1234567
    assert "Job 1234567" in browser.get(f"/jobs/{job_id}/").content.decode()
    assert ">1234567</a>" in browser.get("/jobs/?state=available").content.decode()


def test_a_language_with_commas_in_its_numbers_breaks_no_drawing_and_no_meter(browser: Client) -> None:
    worker = scenes.worker(lease_seconds=1.5)
    scenes.completed_job(worker)
    pages = [browser.get(address, headers={"Accept-Language": "de"}) for address in ("/", "/workers/")]
    page = "".join(response.content.decode() for response in pages)
    tags = " ".join(re.findall(r"<(?:meter|rect)[^>]*>", page))
    attributes = re.findall(r'\s(?:x|y|width|height|min|max|low|high|optimum|value)="([^"]*)"', tags)
    assert "1.5" in attributes
    assert all(re.fullmatch(r"-?\d+(\.\d+)?", value) for value in attributes)


def test_a_page_says_the_language_that_it_speaks(browser: Client) -> None:
    page = browser.get("/", headers={"Accept-Language": "ar"}).content.decode()
    assert '<html lang="en" dir="ltr">' in page


@override_settings(TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}])
def test_a_project_without_context_processors_gets_the_same_pages(browser: Client) -> None:
    page = browser.get("/jobs/").content.decode()
    assert ">kim<" in page
    assert "csrfmiddlewaretoken" in page
    assert 'hx-get="/jobs/"' in page
