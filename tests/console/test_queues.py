"""The queues, and pausing and resuming them."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.http import HttpResponse
from django.test import Client

from shiftboss import acts
from shiftboss.permissions import VIEW, Person, Via
from shiftboss.queue.store import audit, queues
from shiftboss.queue.store.statement import run
from tests.console import scenes

pytestmark = pytest.mark.requirement("C3", "P6")

ODD = [
    "foo/bar.baz",
    "a b",
    "queue+name",
    "a%2Fb",
    "..",
    "#x?y=1",
    "default ",
    "Default",
    '"onmouseover="alert(1)',
    "<b>&amp;",
    "freshen-\N{WHALE}",
]
LINK = r'<a class="button[^"]*" href="([^"]*)" data-dialog>{act}</a>'


def row(page: str, queue: str) -> str:
    """The row of a queue; its name is compared as it is."""
    rows = re.findall(r'<tr data-key="([^"]*)">(.*?)</tr>', page, re.DOTALL)
    [found] = [text for key, text in rows if unescape(key) == queue]
    return str(found)


def link(page: str, queue: str, act: str) -> str:
    found = re.search(LINK.format(act=act), row(page, queue))
    assert found, f"no {act} for {queue!r}"
    return unescape(found[1])


def typed_into(page: str, **typed: str) -> dict[str, str]:
    """What a browser sends of a form."""
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {**{name: unescape(value) for name, value in hidden}, **typed}


def shown(browser: Client) -> str:
    response = browser.get("/queues/")
    assert response.status_code == 200
    return response.content.decode()


def sent(browser: Client, queue: str, act: str, **typed: str) -> HttpResponse:
    """Follow the link in a queue's row and send the form that it leads to."""
    address = link(shown(browser), queue, act)
    form = browser.get(address).content.decode()
    return browser.post(address, typed_into(form, **typed))  # type: ignore[return-value]


def paused() -> dict[str, str]:
    return {pause.queue: pause.reason for pause in run(queues.pauses(authority=scenes.SYSTEM))}


def pause(operator: object, queue: str, reason: str = "the provider is down") -> None:
    acts.pause(queue, by=Person.of_user(operator, via=Via.CONSOLE), reason=reason)


def test_every_queue_has_its_counts_its_workers_and_its_act(browser: Client) -> None:
    worker, other = scenes.worker("default", "mail"), scenes.worker("mail")
    scenes.quarantined_job(worker)
    scenes.job(queue="mail")
    page = shown(browser)
    assert 'href="/jobs/?state=quarantined&amp;queue=default"' in row(page, "default")
    assert 'href="/jobs/?state=available&amp;queue=mail"' in row(page, "mail")
    assert f"#{worker}</a>" in row(page, "mail")
    assert f"#{other}</a>" in row(page, "mail")
    assert f"#{other}</a>" not in row(page, "default")
    assert link(page, "mail", "Pause") == "/queues/pauses/?queue=mail"


def test_a_queue_that_nobody_serves_says_so(browser: Client) -> None:
    scenes.job(queue="reports")
    assert re.search(r'class="long wrong"[^>]*><span class="value">none<', row(shown(browser), "reports"))


def test_without_any_queue_the_page_says_what_will_be_seen(browser: Client) -> None:
    assert "No queue yet." in shown(browser)


def test_a_queue_is_paused_and_resumed_and_the_page_says_by_whom_since_when_and_why(browser: Client) -> None:
    scenes.job(queue="mail")
    response = sent(browser, "mail", "Pause", reason="the provider is down")
    assert (response.status_code, response.headers["Location"]) == (303, "/queues/")
    page = shown(browser)
    assert "Queue <bdi>mail</bdi> is paused: no job of it is claimed." in page
    assert re.search(
        r"<b>Paused</b> by <bdi>kim</bdi> since <time[^>]*>\d\d:\d\d UTC</time>: <bdi>the provider is down</bdi>",
        row(page, "mail"),
    )
    assert sent(browser, "mail", "Resume").status_code == 303
    assert "Queue <bdi>mail</bdi> is claimed again." in shown(browser)
    assert paused() == {}
    entries = run(audit.entries(authority=scenes.SYSTEM, queue="mail"))
    assert [entry.act for entry in entries] == ["resume", "pause"]


@pytest.mark.parametrize("queue", ODD)
def test_whatever_a_queue_is_called_its_act_and_its_links_reach_it_and_no_other(
    browser: Client, queue: str
) -> None:
    for name in ("default", "a", "b", queue):
        scenes.job(queue=name)
    assert sent(browser, queue, "Pause", reason="r").status_code == 303
    assert paused() == {queue: "r"}
    page = shown(browser)
    filtered = f"/jobs/?state=available&queue={quote(queue, safe='')}"
    assert filtered in unescape(row(page, queue))
    listed = browser.get(filtered).content.decode()
    assert len(re.findall(r'<tr data-key="\d+"', listed)) == 1
    assert sent(browser, queue, "Resume").status_code == 303
    assert paused() == {}


def test_a_pause_wants_a_reason(browser: Client) -> None:
    scenes.job(queue="mail")
    response = sent(browser, "mail", "Pause", reason=" ")
    assert response.status_code == 422
    assert "Say in a few words why" in response.content.decode()
    assert paused() == {}


def test_a_queue_that_somebody_has_paused_meanwhile_keeps_its_first_reason(
    browser: Client, operator: object
) -> None:
    scenes.job(queue="mail")
    form = browser.get("/queues/pauses/?queue=mail").content.decode()
    pause(operator, "mail", "first")
    assert browser.post("/queues/pauses/", typed_into(form, reason="second")).status_code == 303
    assert "was paused already; the first reason stays" in shown(browser)
    assert paused() == {"mail": "first"}
    again = browser.get("/queues/pauses/?queue=mail").content.decode()
    assert "Queue mail is paused already" in again
    assert "first" in again


def test_the_form_of_a_queue_that_is_not_paused_says_so(browser: Client) -> None:
    assert "Queue mail is not paused" in browser.get("/queues/resumptions/?queue=mail").content.decode()
    assert browser.post("/queues/resumptions/", {"queue": "mail"}).status_code == 303
    assert "Queue <bdi>mail</bdi> was not paused." in shown(browser)


def test_a_form_that_is_sent_twice_pauses_once(browser: Client) -> None:
    scenes.job(queue="mail")
    typed = typed_into(browser.get("/queues/pauses/?queue=mail").content.decode(), reason="r")
    for _ in range(2):
        assert browser.post("/queues/pauses/", typed).status_code == 303
        assert "is paused: no job of it is claimed" in shown(browser)
    assert len(run(audit.entries(authority=scenes.SYSTEM, queue="mail"))) == 1


@pytest.mark.parametrize("query", ["", "?queue=", "?queue=%00", f"?queue={'q' * 101}"])
def test_a_queue_that_cannot_be_is_no_queue(browser: Client, query: str) -> None:
    assert browser.get(f"/queues/pauses/{query}").status_code == 400
    assert browser.post("/queues/pauses/", {"queue": "q" * 101, "reason": "r"}).status_code == 400
    assert browser.post("/queues/pauses/", {"reason": "r"}).status_code == 400


@pytest.mark.parametrize(("act", "other"), [("pause", "resume"), ("resume", "pause")])
def test_pausing_and_resuming_are_two_permissions(db: None, operator: object, act: str, other: str) -> None:
    client = Client()
    client.force_login(scenes.person("lee", VIEW, f"shiftboss.{other}_queue"))
    scenes.job(queue="mail")
    if act == "resume":
        pause(operator, "mail")
    resource = {"pause": "pauses", "resume": "resumptions"}[act]
    assert resource not in shown(client)
    before = paused()
    for response in (
        client.get(f"/queues/{resource}/?queue=mail"),
        client.post(f"/queues/{resource}/", {"queue": "mail", "reason": "r"}),
    ):
        assert response.status_code == 403
        assert f"shiftboss.{act}_queue" in response.content.decode()
    assert paused() == before


def test_no_queue_is_paused_without_a_token(operator: object) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)  # type: ignore[arg-type]
    response = client.post("/queues/pauses/", {"queue": "mail", "reason": "r"})
    assert response.status_code == 403
    assert "this form is older than your login" in response.content.decode()
    assert paused() == {}


def test_a_pause_is_seen_wherever_its_jobs_are(browser: Client, operator: object) -> None:
    scenes.worker("mail", "default")
    job_id = scenes.job(queue="mail")
    scenes.job()
    pause(operator, "mail")
    for address in (f"/jobs/{job_id}/", "/jobs/?state=available&queue=mail", "/"):
        page = browser.get(address).content.decode().replace("<b><bdi>mail</bdi></b>", "mail")
        assert re.search(
            r"ueue (mail )?is paused by (<bdi>)?kim(</bdi>)? since (<time[^>]*>)?\d\d:\d\d UTC(</time>)?: ", page
        ), address
        assert "the provider is down" in page
    listed = browser.get("/jobs/?state=available").content.decode()
    assert len(re.findall(r'<a class="tag" href="/queues/">paused</a>', listed)) == 1
    assert "is paused by" not in browser.get("/jobs/?state=completed&queue=mail").content.decode()
    assert "1 job waits" in browser.get("/").content.decode()
