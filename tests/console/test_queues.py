"""The queues, and pausing and resuming them."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from django.http import HttpResponse
from django.test import Client

from shiftboss import acts, conf
from shiftboss.console.views import sweeping
from shiftboss.permissions import VIEW, Person, Via
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, histograms, queues
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.store.making import execute, rows

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
    scenes.heartbeat(other, in_use=3)
    page = shown(browser)
    assert 'href="/jobs/?state=quarantined&amp;queue=default"' in row(page, "default")
    assert 'href="/jobs/?state=available&amp;queue=mail"' in row(page, "mail")
    assert '<a href="/queues/one/?queue=mail">' in row(page, "mail")
    workers = r'<a href="/workers/\?queue={}" title="{} of {} slots in use">{}</a>'
    assert re.search(workers.format("mail", 3, 16, 2), row(page, "mail"))
    assert re.search(workers.format("default", 0, 8, 1), row(page, "default"))
    assert link(page, "mail", "Pause") == "/queues/pauses/?queue=mail"


def test_a_queue_that_nobody_serves_says_so(browser: Client) -> None:
    scenes.job(queue="reports")
    assert re.search(r'class="n wrong" data-label="Workers">none<', row(shown(browser), "reports"))


def test_a_queue_says_what_came_and_went_within_the_last_minute(browser: Client) -> None:
    worker = scenes.worker("mail")
    for _ in range(3):
        scenes.job(queue="mail")
    scenes.completed(scenes.claimed(worker, queue="mail", limit=2), worker)
    told = row(shown(browser), "mail")
    assert re.search(r'data-label="Out, last minute">2<', told)
    assert re.search(r'data-label="In, last minute">[1-9]', told)
    assert "Finished jobs by minute: 2 in all" in told


def test_a_queue_with_a_target_says_how_many_jobs_met_it(
    browser: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histograms, "EVERY_SECONDS", 0.0)
    given = {"mail": {"target_wait_seconds": 30}, "default": {"target_wait_seconds": 2.5}}
    options = conf.read({**settings.SHIFTBOSS, "QUEUES": given})
    monkeypatch.setattr(conf, "get", lambda: options)
    worker = scenes.worker("mail", "default")
    for waited in (1, 2, 100):
        scenes.job(queue="mail")
        [held] = scenes.claimed(worker, queue="mail")
        execute(
            "update shiftboss_job set due_at = started_at - make_interval(secs => %s) where id = %s",
            waited,
            held.id,
        )
        scenes.completed([held], worker)
    for column in ("finished_at", "started_at", "due_at"):
        execute(f"update shiftboss_finished set {column} = {column} - interval '2 minutes'")
    while run(histograms.write(authority=scenes.SYSTEM)):
        pass
    page = shown(browser)
    assert re.search(r'<meter [^>]*value="0.6667"[^>]*></meter> <span>66.6 % within 30\s+s<', row(page, "mail"))
    assert re.search(r"within 2.5\s+s: none yet", row(page, "default"))
    one = browser.get("/queues/one/?queue=mail").content.decode()
    assert re.search(r"66.6 % within 30\s+s", one)
    assert "of 3 in the last hour" in one


def test_the_page_of_a_queue_has_all_of_it_in_one_place(browser: Client, operator: object) -> None:
    worker = scenes.worker("odd/name x", "default")
    scenes.job(queue="odd/name x")
    scenes.completed_job(worker, queue="default")
    pause(operator, "odd/name x")
    page = browser.get("/queues/one/?queue=odd/name+x").content.decode()
    assert "Queue <bdi>odd/name x</bdi>" in page
    assert 'href="/jobs/?state=available&amp;queue=odd%2Fname%20x">1</a>' in page
    assert "the provider is down" in page
    assert f'<a href="/workers/{worker}/"' in page
    assert 'href="/queues/resumptions/?queue=odd%2Fname%20x"' in page
    assert 'href="/queues/cancellations/?queue=odd%2Fname%20x"' in page
    assert "What people did" in page
    # Of another queue nothing is said.
    assert "state=completed" not in page
    unknown = browser.get("/queues/one/?queue=nobody").content.decode()
    assert "no live worker serves it" in unknown
    assert browser.get("/queues/one/").status_code == 400


def test_the_form_of_a_pause_says_what_it_stops(browser: Client, operator: object) -> None:
    scenes.worker("mail")
    scenes.worker("mail", "default")
    both = scenes.worker("mail", "imports")
    for _ in range(3):
        scenes.job(queue="mail")
    scenes.completed(scenes.claimed(both, queue="mail", limit=2), both)
    pause(operator, "imports")
    form = browser.get("/queues/pauses/?queue=mail").content.decode()
    assert "That stops 2 jobs a minute; 2 of the 3 workers that serve it would be idle." in form
    assert "Available now: 1; running: 0." in form
    assert "no live worker serves it" in browser.get("/queues/pauses/?queue=other").content.decode()


def waiting(queue: str) -> int:
    """Jobs that wait in a queue."""
    states = ["scheduled", "available", "retryable"]
    [[jobs]] = rows("select count(*) from shiftboss_job where queue = %s and state = any (%s)", queue, states)
    return int(jobs)


@pytest.mark.requirement("C4", "B6")
def test_all_that_waits_in_a_queue_is_cancelled_and_what_comes_after_the_preview_stays(browser: Client) -> None:
    worker = scenes.worker("mail", "other")
    for _ in range(3):
        scenes.job(queue="mail")
    scenes.job(queue="mail", due_at=datetime.now(UTC) + timedelta(hours=1))
    scenes.job(queue="other")
    [held] = scenes.claimed(worker, queue="mail")
    address = "/queues/cancellations/?queue=mail"
    form = browser.get(address).content.decode()
    assert "Cancel all 3 jobs that wait in queue mail?" in form
    assert "2 available" in form
    assert "1 scheduled" in form
    later = scenes.job(queue="mail")
    typed = typed_into(form, reason="wrong recipients")
    for _ in range(2):  # sent twice: done once, and answered alike
        done = browser.post(address, typed)
        assert (done.status_code, done.headers["Location"]) == (303, "/queues/")
        assert (waiting("mail"), waiting("other")) == (1, 1)
        assert "3 jobs" in re.sub("<[^>]*>", "", shown(browser))
    assert scenes.state_of(later) == State.AVAILABLE
    assert scenes.state_of(held.id) == State.RUNNING
    kept = [entry for entry in run(audit.entries(authority=scenes.SYSTEM, queue="mail")) if entry.act == "cancel"]
    assert [(entry.jobs, entry.reason) for entry in kept] == [(3, "wrong recipients")]


@pytest.mark.requirement("C4")
def test_a_cancellation_of_many_goes_on_from_form_to_form(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(acts.many, "BULK_BATCH", 2)
    for _ in range(3):
        scenes.job(queue="mail")
    address = "/queues/cancellations/?queue=mail"
    page = browser.get(address).content.decode()
    for past in (2, 3):
        answer = browser.post(address, typed_into(page, reason="r"))
        page = answer.content.decode()
        assert answer.status_code == 200
        assert f"{past} of about 3" in page
        assert waiting("mail") == 3 - past
    for _ in range(3):
        if answer.status_code == 200:
            answer = browser.post(address, typed_into(answer.content.decode(), reason="r"))
    assert (answer.status_code, waiting("mail")) == (303, 0)
    operations = {entry.operation for entry in run(audit.entries(authority=scenes.SYSTEM, queue="mail"))}
    assert len(operations) == 1


@pytest.mark.requirement("C4", "B15")
def test_nothing_is_cancelled_without_a_preview_a_reason_or_the_permission(browser: Client) -> None:
    scenes.job(queue="mail")
    address = "/queues/cancellations/?queue=mail"
    assert browser.post(address, {"reason": "r"}).status_code == 422
    form = browser.get(address).content.decode()
    assert browser.post(address, typed_into(form, reason=" ")).status_code == 422
    assert browser.post(address, {**typed_into(form, reason="r"), "newest": "x"}).status_code == 422
    viewer = Client()
    viewer.force_login(scenes.person("vic", VIEW))
    assert viewer.post(address, typed_into(form, reason="r")).status_code == 403
    assert "cancellations" not in viewer.get("/queues/one/?queue=mail").content.decode()
    assert waiting("mail") == 1
    assert "Nothing waits in queue other" in browser.get("/queues/cancellations/?queue=other").content.decode()
    assert browser.get("/queues/cancellations/").status_code == 400


def test_pages_of_queues_ask_few_questions_however_many_there_are(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    scenes.worker("mail")
    for number in range(20):
        scenes.job(queue=f"queue {number}")
    with scenes.maintained():
        for address in ("/queues/", "/queues/one/?queue=mail"):
            with django_assert_max_num_queries(12):
                assert browser.get(address).status_code == 200


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
    [one] = re.findall(r'<th scope="row"><a href="(/queues/one/[^"]*)"', row(page, queue))
    told = browser.get(unescape(one)).content.decode()
    assert filtered in unescape(told)
    [cancel] = re.findall(r'href="(/queues/cancellations/[^"]*)"', told)
    form = browser.get(unescape(cancel)).content.decode()
    assert browser.post(unescape(cancel), typed_into(form, reason="r")).status_code == 303
    assert {name: waiting(name) for name in ("default", "a", "b", queue)} == {
        "default": 1,
        "a": 1,
        "b": 1,
        queue: 0,
    }
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
        page = re.sub("</?b>|</?bdi>", "", browser.get(address).content.decode())
        assert re.search(r"ueue (mail|mail, which)? ?is paused by kim", page), address
        assert re.search(r"since <time[^>]*>\d\d:\d\d UTC</time>", page), address
        assert "the provider is down" in page
    listed = browser.get("/jobs/?state=available").content.decode()
    assert len(re.findall(r'<a class="tag" href="/queues/">paused</a>', listed)) == 1
    assert "is paused by" not in browser.get("/jobs/?state=completed&queue=mail").content.decode()
    assert "1 job waits" in browser.get("/").content.decode()
