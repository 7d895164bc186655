"""The workers: what they say of themselves, what runs in them, and what is ordered of them."""

import re
from html import unescape

import pytest
from django.http import HttpResponse
from django.test import Client

from shiftboss import acts
from shiftboss.console import roster
from shiftboss.permissions import VIEW
from shiftboss.queue.authority import System
from shiftboss.queue.contract import Note, NoteKind
from shiftboss.queue.store import audit, notes, operate, workers
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told, user
from tests.programs.shell import Shell
from tests.store.making import execute, rows

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "L28")]
SYSTEM = System()
HOSTILE = '<b>"\u202e&amp;'


@pytest.fixture
def sh(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line."""
    return Shell(capsys, monkeypatch)


@pytest.fixture
def admin(db: None) -> Client:
    """An administrator's browser."""
    client = Client()
    client.force_login(scenes.person("ada", role="admin"))
    return client


def page(browser: Client, address: str = "/workers/", status: int = 200) -> str:
    """A page's text."""
    response = browser.get(address)
    assert response.status_code == status, response.content
    return response.content.decode()


def row(text: str, worker: int) -> str:
    """The row of a worker."""
    [found] = re.findall(rf'<tr data-key="{worker}".*?</tr>', text, re.DOTALL)
    return str(found)


def listed(text: str) -> list[int]:
    """The workers of the table, in its order."""
    return [int(number) for number in re.findall(r'<tr data-key="(\d+)"', text)]


def order_of(worker: int) -> tuple[str | None, str | None]:
    """What is ordered of a worker, and by whom."""
    [found] = rows("select ordered, ordered_by from shiftboss_worker where id = %s", worker)
    return found  # type: ignore[no-any-return]


def sent(browser: Client, worker: int, resource: str, **typed: str) -> HttpResponse:
    """The form of an order, filled in and sent."""
    address = f"/workers/{worker}/{resource}/"
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page(browser, address))
    given = {**{name: unescape(value) for name, value in hidden}, **typed}
    return browser.post(address, given)  # type: ignore[return-value]


@pytest.mark.requirement("L7")
def test_a_worker_is_told_with_its_heartbeat_its_lag_its_slots_and_what_it_uses(browser: Client) -> None:
    worker = scenes.worker("default", "mail", pool="heavy")
    scenes.heartbeat(worker, lag_ms=900)
    execute("update shiftboss_worker set started_at = now() - interval '100 seconds', code_version = 'v7'")
    scenes.heartbeat(worker, in_use=3, lag_ms=7, losses=2, memory_kb=300 * 1024, cpu_ms=150_000)
    told = row(page(browser), worker)
    assert re.search(r'<meter min="0" max="30" low="15" high="15"[^>]*aria-label="Heartbeat age', told)
    # The worst lag against the lease; how late one may be before the worker counts as late.
    assert re.search(r'<meter min="0" max="30" low="10" high="10" optimum="0" value="0.9"', told)
    for words in ("7\xa0ms, worst 900\xa0ms", "3 of 8", "300.0\xa0MiB", "v7", "web-1", "4711", "default", "mail"):
        assert words in told or words.replace("\xa0", " ") in told, words
    assert re.search(r'class="n wrong" data-label="Losses">2<', told)
    assert re.search(r'data-label="CPU">1\.[45]\d<', told)


def test_what_runs_in_a_worker_stands_below_it_and_whole_on_its_own_page(browser: Client) -> None:
    worker = scenes.worker()
    for _ in range(6):
        scenes.job()
    held = scenes.claimed(worker, limit=6)
    scenes.heartbeat(worker, in_use=6)
    # Which of those that are claimed together begins first is nobody's promise.
    execute("update shiftboss_job set started_at = now() - interval '1 minute' + id * interval '1 microsecond'")
    execute("update shiftboss_job set started_at = now() - interval '3 minutes' where id = %s", held[4].id)
    run(operate.cancel([held[4].id], authority=SYSTEM))
    progress = Note(NoteKind.PROGRESS, '{"value": 3, "total": 4}')
    run(notes.note([(held[0].lease, progress)], authority=SYSTEM, worker_id=worker))
    text = page(browser)
    [runs] = re.findall(rf'<tr class="runs" data-key="runs-{worker}">(.*?)</tr>', text, re.DOTALL)
    shown = [int(job) for job in re.findall(r'<li data-key="(\d+)">', runs)]
    assert shown == [held[4].id, *(job.id for job in held[:2])]
    assert re.search(rf">{held[4].id}</a>.*?for <time[^>]*>3\s+min.*?its end is requested", runs, re.DOTALL)
    assert "lease " in runs
    assert '<progress value="75"' in runs
    assert f'<a href="/workers/{worker}/">3 more</a>' in runs
    whole = page(browser, f"/workers/{worker}/")
    assert {int(job) for job in re.findall(r'<tr data-key="(\d+)">', whole)} == {job.id for job in held}
    assert 'href="/workers/"' in whole


def test_workers_in_trouble_come_first_and_those_that_ended_are_folded_away(browser: Client) -> None:
    fine, late, lost, ended = (scenes.worker(pid=number) for number in range(1, 5))
    for worker in (fine, late, lost, ended):
        scenes.heartbeat(worker)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '20 seconds' where id = %s", late)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '5 minutes' where id = %s", lost)
    scenes.heartbeat(ended, state="stopped")
    text = page(browser)
    assert listed(text) == [late, lost, fine]
    assert "1 worker ended within the last hour" in text
    assert f'data-key="ended-{ended}"' in text
    assert 'class="state lost"' in row(text, lost)
    execute("delete from shiftboss_worker where id <> %s", ended)
    assert "No worker lives. Start one:" in page(browser)


def test_the_page_is_narrowed_by_the_address_alone(browser: Client) -> None:
    first = scenes.worker("mail/odd name", pool="a", host=HOSTILE)
    second = scenes.worker("mail/odd name", "default", pool="b", host="web-2")
    drained = scenes.worker(pool="b", host="web-3")
    run(workers.order(drained, authority=SYSTEM, word="drain", by="kim"))
    for query, expected in {
        "": {first, second, drained},
        "?pool=b": {second, drained},
        "?host=web-2": {second},
        "?host=%3Cb%3E%22%E2%80%AE%26amp%3B": {first},
        "?queue=mail%2Fodd+name": {first, second},
        "?pool=b&queue=default": {second, drained},
        "?state=draining": {drained},
        "?state=running&pool=b": {second},
        "?state=late": set(),
        "?pool=nobody": set(),
    }.items():
        text = page(browser, f"/workers/{query}")
        assert set(listed(text)) == expected, query
        assert HOSTILE not in text
    assert "No worker fits this filter." in page(browser, "/workers/?state=lost")
    for query in (
        "?state=dance",
        "?page=0",
        "?page=-1",
        "?page=1e9",
        "?queue=%00",
        "?pool=%00",
        f"?page={'9' * 30}",
    ):
        page(browser, f"/workers/{query}", status=400)


def test_a_page_holds_so_many_workers_and_one_beyond_the_last_is_the_last(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "PAGE", 2)
    made = [scenes.worker(pid=number) for number in range(1, 6)]
    first = page(browser)
    assert listed(first) == made[:2]
    assert 'rel="next" href="/workers/?page=2"' in first
    last = page(browser, "/workers/?page=3")
    assert listed(last) == made[4:]
    assert 'rel="prev" href="/workers/?page=2"' in last
    assert 'rel="next"' not in last
    assert listed(page(browser, "/workers/?page=9999")) == made[4:]


def test_a_page_of_workers_asks_few_questions_however_many_there_are(
    browser: Client, django_assert_max_num_queries: object
) -> None:
    for number in range(1, 21):
        worker = scenes.worker(pid=number)
        scenes.job()
        scenes.claimed(worker)
    with scenes.maintained(), django_assert_max_num_queries(12):  # type: ignore[operator]
        page(browser)


@pytest.mark.requirement("L26", "C4")
def test_a_worker_is_drained_with_a_reason_and_the_audit_keeps_it(browser: Client) -> None:
    worker = scenes.worker("default", "mail")
    scenes.worker("default")
    asked = page(browser, f"/workers/{worker}/drains/")
    assert "No other live worker serves this queue: <bdi>mail</bdi>" in asked
    refused = sent(browser, worker, "drains", reason=" ")
    assert (refused.status_code, order_of(worker)) == (422, (None, None))
    done = sent(browser, worker, "drains", reason="its host reboots")
    assert (done.status_code, done.headers["Location"]) == (303, f"/workers/{worker}/")
    assert order_of(worker) == ("drain", "kim")
    text = page(browser, f"/workers/{worker}/")
    assert f'Worker <a href="/workers/{worker}/">{worker}</a> is told to drain' in text
    assert re.search(r"<b>Drain</b> ordered by <bdi>kim</bdi> at <time[^>]*>\d\d:\d\d UTC</time>", text)
    assert 'class="state draining"' in text
    assert "drains/" not in text
    [entry] = run(audit.entries(authority=SYSTEM, limit=1))
    assert (entry.act, entry.reason, entry.actor_name) == ("drain_worker", "its host reboots", "kim")
    kept = page(browser, "/audit/")
    assert f'<a href="/workers/{worker}/">worker {worker}</a>' in kept
    assert "running → draining" in kept


@pytest.mark.requirement("L26")
def test_an_order_is_not_given_twice_nor_to_who_is_gone(admin: Client) -> None:
    worker, gone = scenes.worker(pid=1), scenes.worker(pid=2)
    scenes.heartbeat(gone, state="stopped")
    address = f"/workers/{worker}/stops/"
    assert sent(admin, worker, "stops", reason="it hangs").status_code == 303
    assert order_of(worker) == ("stop", "ada")
    assert "is stopping already" in page(admin, address, status=409)
    for resource in ("stops", "drains"):
        again = admin.post(f"/workers/{worker}/{resource}/", {"reason": "r", "request_id": a_request()})
        assert again.status_code == (303 if resource == "stops" else 409)
        if resource == "stops":
            assert "the first order stays" in page(admin, f"/workers/{worker}/")
        late = admin.post(f"/workers/{gone}/{resource}/", {"reason": "r", "request_id": a_request()})
        assert late.status_code == 409
        assert f"Worker {gone} is stopped" in late.content.decode()
    assert (order_of(worker), order_of(gone)) == (("stop", "ada"), (None, None))


@pytest.mark.requirement("L26")
def test_the_same_form_that_is_sent_twice_orders_once(browser: Client) -> None:
    worker = scenes.worker()
    before = rows("select count(*) from shiftboss_audit")[0][0]
    typed = {"reason": "r", "request_id": a_request()}
    for _ in range(2):
        assert browser.post(f"/workers/{worker}/drains/", typed).status_code == 303
        assert "is told to drain" in page(browser, f"/workers/{worker}/")
    scenes.heartbeat(worker, state="stopped")  # obeyed; the answer to the first one was lost
    assert browser.post(f"/workers/{worker}/drains/", typed).status_code == 303
    assert rows("select count(*) from shiftboss_audit")[0][0] == before + 1


def test_an_operator_drains_and_only_an_administrator_stops(browser: Client, admin: Client) -> None:
    worker = scenes.worker()
    assert "drains/" in page(browser, f"/workers/{worker}/")
    assert "stops/" not in page(browser, f"/workers/{worker}/")
    assert "shiftboss.stop_worker" in page(browser, f"/workers/{worker}/stops/", status=403)
    assert "stops/" in page(admin, f"/workers/{worker}/")
    viewer = Client()
    viewer.force_login(scenes.person("vic", VIEW))
    assert "drains/" not in page(viewer, f"/workers/{worker}/")
    page(viewer, f"/workers/{worker}/drains/", status=403)
    assert order_of(worker) == (None, None)


@pytest.mark.parametrize("number", ["0", "999999999", f"{10**30}"])
def test_a_worker_that_never_was_has_no_page(browser: Client, number: str) -> None:
    for path in (f"/workers/{number}/", f"/workers/{number}/drains/"):
        assert "There is no such worker" in page(browser, path, status=404)


@pytest.mark.requirement("C5", "L26")
def test_the_api_orders_and_says_what_is_in_the_way() -> None:
    caller = Caller(token=token_of(user("ci", role="admin")))
    worker, gone = scenes.worker(pid=1), scenes.worker(pid=2)
    scenes.heartbeat(gone, state="stopped")
    problem(caller.post(f"workers/{worker}/drain"), 422, "reason_needed")
    key = a_request()
    for repeated in (False, True):
        done = told(caller.post(f"workers/{worker}/drain", {"reason": "r"}, key=key))
        assert (done["act"], done["worker_id"], done["before"], done["after"], done["repeated"]) == (
            "drain_worker",
            str(worker),
            "running",
            "draining",
            repeated,
        )
    done = told(caller.post(f"workers/{worker}/stop", {"reason": "r"}))
    assert (done["before"], done["after"]) == ("draining", "stopping")
    refused = problem(caller.post(f"workers/{worker}/drain", {"reason": "r"}), 409, "order_refused")
    assert (refused["worker_id"], refused["state"]) == (str(worker), "stopping")
    assert (
        problem(caller.post(f"workers/{gone}/stop", {"reason": "r"}), 409, "order_refused")["state"] == "stopped"
    )
    for number in ("0", "x", "999999999"):
        problem(caller.post(f"workers/{number}/stop", {"reason": "r"}), 404, "no_such_worker")
    found = {one["id"]: one for one in told(caller.get("status"))["workers"]}
    assert (found[str(worker)]["ordered"], found[str(gone)]["ordered"]) == ("stop", None)


@pytest.mark.requirement("L26")
def test_the_command_line_lists_workers_and_orders_one_after_the_other(sh: Shell) -> None:
    assert sh("workers", "list").out == "no workers\n"
    first, second, gone = (scenes.worker(pid=number) for number in (1, 2, 3))
    scenes.heartbeat(gone, state="stopped")
    scenes.heartbeat(first, in_use=3, memory_kb=2048, cpu_ms=500)
    ran = sh("workers", "drain", first, gone, first, "--reason", "its host reboots")
    assert ran.code == 1
    assert ran.lines == [
        f"worker {first}: draining (was running)",
        f"worker {gone}: not done: worker {gone} is stopped: nothing can be ordered of it any more",
    ]
    assert sh("workers", "drain", first, "--reason", "r").out == f"worker {first}: draining already\n"
    assert sh("workers", "stop", second, "--reason", "r").code == 2  # nobody is there to be asked
    sh.at_a_terminal("n")
    asked = sh("workers", "stop", first, second, "--reason", "r")
    assert (asked.code, order_of(second)) == (1, (None, None))
    assert f"worker {first} (default on web-1, pid 1): 3 of 8 busy" in asked.err
    done = sh("workers", "stop", first, second, "--reason", "it hangs", "--yes", "--format", "json").json
    assert (done["act"], done["done"], done["refused"]) == ("stop_worker", 2, 0)
    assert [one["before"] for one in done["workers"]] == ["draining", "running"]
    listed = sh("workers", "list")
    assert re.search(rf"(?m)^ *{first} .* 3 of 8 .* 2 MB .* stop by os:", listed.out)
    told = {one["id"]: one for one in sh("workers", "list", "--format", "json").json["workers"]}
    assert (told[str(first)]["memory_kb"], told[str(gone)]["ordered"]) == (2048, None)


def test_an_order_that_cannot_be_kept_is_not_given() -> None:
    worker = scenes.worker()
    nobody = person("kim\x00")
    with pytest.raises(Exception, match="NUL"):
        acts.drain_worker(worker, by=nobody, reason="r")
    assert order_of(worker) == (None, None)
    assert acts.stop_worker(worker, by=person(), reason="r").after == "stopping"
