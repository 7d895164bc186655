"""The pages of hosts, their programs, logs and commands, and the same for programs that ask the API."""

import re
import time
from html import unescape
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings

from shiftboss import acts, conf
from shiftboss.console import hosts as arranging
from shiftboss.console import lives as told_lives
from shiftboss.console import logs
from shiftboss.permissions import VIEW
from shiftboss.queue.store import audit, commands, hosts, processes
from shiftboss.queue.store.hosts import Agent
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told, user
from tests.store.making import execute

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "L28", "B1")]

LONG_SECONDS = 3600.0
"""A lease that lasts for as long as any test does."""

HOSTILE = "<script>alert(1)</script>\N{RIGHT-TO-LEFT OVERRIDE}\x1b[31m"
WORKER = {
    "name": "worker-default-1",
    "pool": "default",
    "pid": 4711,
    "launcher": 4710,
    "memory_kb": 51_200,
    "cores": 1.254,
}


def a_host(name: str = "web-1", *programs: dict[str, Any], trouble: str | None = None, **more: Any) -> int:
    """A host whose agent has seen these programs; the agent's fence."""
    given: dict[str, Any] = {"hostname": name, "code_version": "v7", "lease_seconds": LONG_SECONDS} | more
    agent = Agent(name=name, pid=11, home="/srv/shiftboss", **given)
    fence = run(hosts.take(agent, authority=scenes.SYSTEM))
    assert fence
    usual = {"state": "RUNNING", "pid": 12, "launcher": 10, "since": int(time.time()) - 300, "pool": None}
    seen = [usual | {"memory_kb": None, "trouble": None} | one for one in programs]
    assert run(hosts.beat(name, authority=scenes.SYSTEM, fence=fence, programs=seen, trouble=trouble))
    return fence


def noted(fence: int, *lives: Life, host: str = "web-1") -> None:
    """Let the agent note these."""
    assert run(processes.note(lives, authority=scenes.SYSTEM, host=host, fence=fence))


def life(hours_ago: float, lasted: float | None = 60.0, **more: Any) -> Life:
    """A life that began so long ago and ended by a signal, unless it is said how, or (None) lives."""
    began = time.time() - 3600 * hours_ago
    ending: dict[str, Any] = {} if lasted is None else {"ended": began + lasted, "uptime_seconds": lasted}
    ending |= {} if lasted is None or "ending" in more else {"ending": "signal", "signal": 9}
    given = {"program": "worker-default-1", "pool": "default", "launcher": int(hours_ago * 1000)} | ending
    return Life(started=began, **{**given, **more})


def page(browser: Client, address: str = "/hosts/", status: int = 200) -> str:
    """A page's text."""
    response = browser.get(address)
    assert response.status_code == status, response.content
    return response.content.decode()


def row(text: str, key: str) -> str:
    """The row of this key, without its markup."""
    [found] = re.findall(rf'<tr data-key="{re.escape(key)}".*?</tr>', text, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found)).split())


def sent(browser: Client, address: str, **typed: str) -> HttpResponse:
    """A form, filled in and sent."""
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page(browser, address))
    answer: Any = browser.post(address, {**{name: unescape(value) for name, value in hidden}, **typed})
    sent_on: HttpResponse = answer
    return sent_on


def answered(command: int, fence: int, *, failed: bool = False, host: str = "web-1", **result: Any) -> None:
    """Let the host's agent take a command and answer it."""
    taken = run(commands.claim(authority=scenes.SYSTEM, host=host, fence=fence))
    assert command in [one.id for one in taken]
    ending = commands.end(command, authority=scenes.SYSTEM, fence=fence, failed=failed, result=result)
    assert run(ending)


@pytest.fixture
def admin(db: None) -> Client:
    """An administrator's browser."""
    client = Client()
    client.force_login(scenes.person("ada", role="admin"))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    """The browser of somebody who may only look."""
    client = Client()
    client.force_login(scenes.person("vic", VIEW))
    return client


def test_a_program_is_told_with_what_it_uses_how_it_fared_and_what_it_has_in_hand(browser: Client) -> None:
    worker = scenes.worker(host="web-1", pid=4711)
    execute("update shiftboss_worker set code_version = 'v8'")
    scenes.heartbeat(worker, in_use=1)
    job_id = scenes.job()
    scenes.claimed(worker)
    fence = a_host("web-1", WORKER, {"name": "web"}, {"name": "import", "state": "FATAL", "pid": None})
    noted(
        fence,
        life(7.5, ending="code", signal=None, code=1),
        life(5.0, asked=True, ending="code", signal=None, code=0),
        life(2.0, lasted=None, pid=4711),
    )
    text = page(browser)
    shown = row(text, "web-1/worker-default-1")
    for words in (
        "running",
        "4711",
        "5\xa0min",
        "50.0 MiB",
        "1.25",
        "v8",
        str(job_id),
        f"worker {worker}",
        "exit code 0",
    ):
        assert words.replace("\xa0", " ") in shown.replace("\xa0", " "), words
    assert "asked for" in shown
    assert 'aria-label="Ends by hour: 2 in the last 24 hours, 1 of them wanted by nobody"' in text
    assert "does not start" in row(text, "web-1/import")
    assert 'class="state lost"' in text
    assert text.index("worker-default-1") > text.index(">import<")
    assert "Pool <bdi>default</bdi>: 1 of 1 workers run" in text
    assert f'href="/jobs/{job_id}/"' in text


def test_a_host_that_is_silent_is_told_as_such_and_its_picture_is_marked_as_old(browser: Client) -> None:
    a_host("web-1", WORKER)
    a_host("web-2", {"name": "web"})
    execute("update shiftboss_host set heartbeat_at = now() - interval '2 hours' where name = 'web-2'")
    a_host("web-3", {"name": "web"}, trouble="supervisord does not answer on /run/x.sock")
    text = page(browser)
    assert [text.index(f'data-key="web-{n}"') for n in (2, 3, 1)] == sorted(
        text.index(f'data-key="web-{n}"') for n in (1, 2, 3)
    )
    assert "Its agent is silent since" in text
    assert "supervisord does not answer on /run/x.sock" in text
    assert text.count('<span class="state past">running</span> <span class="small">when last seen</span>') == 2
    assert 'href="/hosts/web-2/web/log/"' not in text
    execute("update shiftboss_host set stopped_at = now() where name = 'web-1'")
    assert "Its agent ended in order at" in page(browser)
    execute("update shiftboss_host set heartbeat_at = now() - interval '2 days' where name = 'web-2'")
    assert "1 host has been silent for more than a day" in page(browser)


@pytest.mark.requirement("L28")
def test_what_a_host_has_left_and_what_it_runs_short_of_stand_above_its_programs(browser: Client) -> None:
    fence = a_host("web-1", {"name": "web"})
    left = {
        "memory": {"total_kb": 1000, "available_kb": 600},
        "disks": [{"of": ["home"], "total_kb": 1000, "free_kb": 1}],
    }
    beat = hosts.beat("web-1", authority=scenes.SYSTEM, fence=fence, programs=[], trouble=None, resources=left)
    assert run(beat)
    shown = page(browser)
    assert "40 % of 1000.0" in shown.replace("\N{NO-BREAK SPACE}", " ")
    assert '<p class="small wrong">the disk of home is 99 % full</p>' in shown


def test_before_any_agent_was_heard_of_it_is_said_how_to_run_one(browser: Client) -> None:
    assert "manage.py shiftboss_listener" in page(browser)
    a_host("web-1")
    assert "Its agent has seen no program yet." in page(browser)


def test_two_versions_of_a_pool_stand_side_by_side_and_are_marked(browser: Client) -> None:
    for pid, version in ((4711, "v8"), (4712, "v9"), (4713, "v9")):
        worker = scenes.worker(pid=pid)
        execute("update shiftboss_worker set code_version = %s where id = %s", version, worker)
    scenes.worker(pool="reports", pid=5)
    a_host("web-1", WORKER, {**WORKER, "name": "worker-default-2", "pid": 4712})
    text = page(browser)
    [said] = re.findall(r'<p class="paused">(.*?)</p>', text, re.DOTALL)
    said = " ".join(re.sub(r"<[^>]*>", " ", said).split())
    assert said == "Pool default runs 2 versions side by side: v9 2 workers, v8 1 worker"
    assert '<span class="tag"><bdi>v8</bdi></span>' in text
    execute("update shiftboss_worker set code_version = 'v9'")
    assert "side by side" not in page(browser)


def test_nobody_watched_for_a_while_is_told_and_stands_among_the_lives(browser: Client) -> None:
    fence = a_host("web-1", WORKER)
    noted(fence, life(3.0), life(0.5, lasted=None))
    execute(
        "update shiftboss_host set gap_from = now() - interval '2 hours', gap_until = now() - interval '1 hour'"
    )
    assert "Nobody watched it from" in page(browser)
    text = page(browser, "/hosts/web-1/worker-default-1/")
    keys = re.findall(r'<tr data-key="(\w+)"', text)
    assert keys.index("gap") == 1
    assert "nobody watched this host" in text


def test_lives_are_told_with_how_they_ended_and_what_was_in_hand(browser: Client, viewer: Client) -> None:
    fence = a_host("web-1", WORKER)
    noted(
        fence,
        life(4.0, ending="unknown", signal=None, log="nobody saw"),
        life(3.0, peak_memory_kb=2048, cpu_seconds=3.0, log="first line\nSegmentation fault"),
        life(2.0, asked=True, ending="code", signal=None, code=0, log="goodbye"),
        life(1.0, lasted=None),
    )
    known = '[{"id": "77", "queue": "default", "task": "a.b", "fence": 1}]'
    execute("update shiftboss_process set jobs = %s::jsonb where signal = 9", known)
    text = page(browser, "/hosts/web-1/worker-default-1/")
    newest, asked, killed, unseen = run(processes.lives(authority=scenes.SYSTEM))
    assert "lives" in row(text, str(newest.id))
    assert "exit code 0 asked for" in row(text, str(asked.id))
    for words in ("signal 9 (SIGKILL)", "1 min", "2.0 MiB", "3.0 s", "77"):
        assert words in row(text, str(killed.id)).replace("\xa0", " "), words
    assert "nobody saw how" in row(text, str(unseen.id))
    assert "the time is when it was noticed" in row(text, str(unseen.id))
    assert "nobody knows" in row(text, str(unseen.id))
    assert "Segmentation fault" in text
    assert "goodbye" not in text
    other = page(browser, f"/hosts/web-1/worker-default-1/?life={asked.id}")
    assert "goodbye" in other
    assert "Segmentation fault" not in other
    hidden = page(viewer, f"/hosts/web-1/worker-default-1/?life={asked.id}")
    assert "goodbye" not in hidden
    assert "shiftboss.tail_program" in hidden


def test_a_page_of_hosts_on_which_nothing_changed_is_not_sent_again(browser: Client) -> None:
    fence = a_host("web-1", WORKER)
    a_host("web-2", {"name": "web"})
    execute("update shiftboss_host set heartbeat_at = now() - interval '2 hours' where name = 'web-2'")
    noted(fence, life(2.5), life(2.0, lasted=None))
    for address in ("/hosts/", "/hosts/web-1/worker-default-1/", "/hosts/web-2/web/"):
        [version] = re.findall(r'"Shiftboss-Version": "(\w+)"', unescape(page(browser, address)))
        refresh = {"HX-Request": "true", "Shiftboss-Version": version}
        execute("update shiftboss_host set heartbeat_at = heartbeat_at + interval '1 ms' where name = 'web-1'")
        assert browser.get(address, headers=refresh).status_code == 204, address
    execute("update shiftboss_host set trouble = 'its socket is gone'")
    changed = browser.get("/hosts/", headers={"HX-Request": "true", "Shiftboss-Version": version})
    assert (changed.status_code, b"its socket is gone" in changed.content) == (200, True)


def test_pages_of_hosts_ask_few_questions_however_much_there_is(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        fence = a_host(f"web-{number}", WORKER, *({"name": f"p{n}"} for n in range(10)))
        scenes.worker(host=f"web-{number}")
        noted(fence, life(2.0), life(1.0, lasted=None), host=f"web-{number}")
    # The page of a program has what it has in hand, its lives, its holds, and what was asked of it.
    for address, most in (("/hosts/", 13), ("/hosts/web-1/worker-default-1/", 15)):
        with scenes.maintained(), django_assert_max_num_queries(most):
            page(browser, address)


def test_the_page_is_narrowed_and_paged_by_its_address(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arranging, "PAGE", 1)
    a_host("web-1", WORKER)
    a_host("web-10", {"name": "web"})
    a_host("web-2", {"name": "web"})

    def shown(query: str) -> list[str]:
        return re.findall(r'<section class="host" data-key="([^"]*)"', page(browser, f"/hosts/{query}"))

    assert shown("") == ["web-1"]
    assert shown("?page=2") == ["web-2"]
    assert shown("?page=3") == shown("?page=999") == ["web-10"]
    assert shown("?pool=default") == ["web-1"]
    assert shown("?host=web-10") == ["web-10"]
    assert "No host fits this filter." in page(browser, "/hosts/?host=nowhere")
    for query in ("?page=0", "?page=x", f"?page={'9' * 30}"):
        page(browser, f"/hosts/{query}", status=400)


@pytest.mark.requirement("C4", "B15")
def test_a_program_is_restarted_with_a_reason_and_its_command_tells_what_becomes_of_it(browser: Client) -> None:
    fence = a_host("web-1", WORKER)
    address = "/hosts/web-1/worker-default-1/restarts/"
    assert sent(browser, address, reason=" ").status_code == 422
    done = sent(browser, address, reason="it leaks")
    assert (done.status_code, done.headers["Location"]) == (303, "/hosts/web-1/worker-default-1/")
    text = page(browser, "/hosts/web-1/worker-default-1/")
    [number] = set(re.findall(r'href="/commands/(\d+)/"', text))
    assert "web-1 is asked to restart worker-default-1." in text
    told_now = page(browser, f"/commands/{number}/")
    assert "It waits for the agent of web-1" in told_now
    command = int(number)
    assert run(commands.claim(authority=scenes.SYSTEM, host="web-1", fence=fence))
    saying = commands.say(command, authority=scenes.SYSTEM, fence=fence, progress="worker-default-1 is stopping")
    assert run(saying)
    assert "at it: worker-default-1 is stopping" in page(browser, f"/commands/{number}/")
    result = {"states": {"worker-default-1": "RUNNING"}}
    assert run(commands.end(command, authority=scenes.SYSTEM, fence=fence, failed=False, result=result))
    assert "worker-default-1 is running" in page(browser, f"/commands/{number}/")
    listed = row(page(browser, "/hosts/web-1/worker-default-1/"), f"command-{number}")
    assert "Restart worker-default-1" in listed
    assert "done" in listed
    audited = page(browser, "/audit/")
    [line] = re.findall(r'<tr data-key="act-\d+">(.*?)</tr>', audited, re.DOTALL)
    assert 'href="/hosts/web-1/worker-default-1/"' in line
    assert f'href="/commands/{number}/"' in line
    assert "it leaks" in line


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("update shiftboss_command set expires_at = now() - interval '1 s'", "so it is not done any more"),
        (
            "update shiftboss_command set state = 'claimed', claimed_at = now(), fence = 99",
            "nobody knows whether it was done",
        ),
        (
            "update shiftboss_command set state = 'failed', claimed_at = now(), fence = 1, ended_at = now(),"
            ' result = \'{"error": "web does not stay up: see its log"}\'',
            "web does not stay up: see its log",
        ),
    ],
)
def test_what_was_not_done_is_said_in_plain_words(browser: Client, before: str, says: str) -> None:
    a_host("web-1", {"name": "web"})
    acts.start_program("web-1", "web", by=person())
    execute(before)
    [number] = [one.id for one in run(commands.commands(authority=scenes.SYSTEM))]
    assert says in page(browser, f"/commands/{number}/")
    page(browser, f"/commands/{number + 1}/", status=404)
    page(browser, f"/commands/{10**25}/", status=404)


@pytest.mark.requirement("L31")
def test_a_pool_is_scaled_from_the_page_of_hosts(browser: Client) -> None:
    fence = a_host(
        "web-1", WORKER, {**WORKER, "name": "worker-default-2", "state": "STOPPED", "pid": None, "launcher": None}
    )
    address = "/hosts/web-1/pools/default/scales/"
    asked = page(browser, address)
    assert "1 of 2 run now" in asked
    assert 'max="2"' in asked
    assert sent(browser, address, reason="more mail", count="-1").status_code == 422
    assert sent(browser, address, reason="more mail", count="2").headers["Location"] == "/hosts/"
    text = page(browser)
    assert "web-1 is asked to run 2 workers of default." in text
    [claim] = run(commands.claim(authority=scenes.SYSTEM, host="web-1", fence=fence))
    assert (claim.verb, claim.pool, claim.count) == ("scale", "default", 2)
    listed = page(browser, "/hosts/web-1/worker-default-1/")
    assert "Scale pool default to 2" in listed
    assert "2 workers" in page(browser, "/audit/")


def test_what_makes_no_sense_now_is_not_offered_and_not_done(
    browser: Client, admin: Client, viewer: Client
) -> None:
    a_host("web-1", {"name": "web"}, {"name": "down", "state": "STOPPED", "pid": None}, {"name": "listener"})
    assert "stops/" not in page(browser, "/hosts/web-1/web/")
    assert "shiftboss.stop_program" in page(browser, "/hosts/web-1/web/stops/", status=403)
    assert "stops/" in page(admin, "/hosts/web-1/web/")
    assert "restarts/" not in page(viewer, "/hosts/web-1/web/")
    assert "kills/" not in page(admin, "/hosts/web-1/web/")
    assert "is not for a program as this one stands now" in page(admin, "/hosts/web-1/web/kills/", status=409)
    a_host("web-2", {"name": "web", "state": "STOPPING"})
    assert "kills/" in page(admin, "/hosts/web-2/web/")
    assert "kills/" not in page(browser, "/hosts/web-2/web/")
    assert "shiftboss.kill_program" in page(browser, "/hosts/web-2/web/kills/", status=403)
    for wanted, unwanted, program in (("starts/", "restarts/", "down"), ("restarts/", 'starts/"', "web")):
        text = page(browser, f"/hosts/web-1/{program}/")
        assert f"/hosts/web-1/{program}/{wanted}" in text
        assert f"/hosts/web-1/{program}/{unwanted}" not in text
    assert "restarts/" not in page(browser, "/hosts/web-1/listener/")
    assert "is not for a program as this one stands now" in page(browser, "/hosts/web-1/web/starts/", status=409)
    for address in (
        "/hosts/web-9/web/",
        "/hosts/web-1/nothing/",
        "/hosts/web-1/%00/",
        "/hosts/web-1/nothing/drains/",
    ):
        page(browser, address, status=404)
    execute("update shiftboss_host set stopped_at = now()")
    assert "does not answer" in page(browser, "/hosts/web-1/web/restarts/", status=409)
    refused = browser.post("/hosts/web-1/web/restarts/", {"reason": "r"})
    assert refused.status_code == 409
    assert run(commands.commands(authority=scenes.SYSTEM)) == []


def a_log(browser: Client, fence: int, *lines: str, program: str = "web") -> str:
    """The address of a log that was asked for and answered."""
    led = sent(browser, f"/hosts/web-1/{program}/log/", reason="")
    assert led.status_code == 303
    address = led.headers["Location"]
    assert "It waits for the agent of web-1" in page(browser, address)
    answered(int(address.rpartition("=")[2]), fence, lines=list(lines))
    return address


def entries() -> int:
    """How many acts the audit has."""
    return len(run(audit.entries(authority=scenes.SYSTEM, limit=500)))


def test_a_log_is_shown_with_nothing_in_it_that_hurts_and_long_lines_cut(browser: Client) -> None:
    fence = a_host("web-1", {"name": "web"})
    address = a_log(browser, fence, "all is well", HOSTILE, "x" * 10_000_000, "last")
    text = page(browser, address)
    assert "<script>alert" not in text
    assert not re.search("[\u202e\x1b]", text)
    assert "and 9,999,000 characters more" in text
    assert len(text) < 100_000
    assert [int(n) for n in re.findall(r'<li value="(\d+)">', text)] == [1, 2, 3, 4]
    found = page(browser, f"{address}&q=ALL+IS")
    assert re.findall(r'<li value="(\d+)">', found) == ["1"]
    assert "1 of the last 4 lines hold “ALL IS”" in found
    assert "No line holds that." in page(browser, f"{address}&q=%3Cnothing%3E")


def test_a_log_is_looked_at_again_without_another_entry_of_the_audit(browser: Client) -> None:
    fence = a_host("web-1", {"name": "web"})
    address = a_log(browser, fence, "first")
    kept = entries()
    again = sent(browser, address)
    assert (again.status_code, again.headers["Location"]) == (303, address)
    assert "first" in page(browser, address)
    number = address.rpartition("=")[2]
    following = {"command": number, "reason": ""}
    assert browser.post("/hosts/web-1/web/log/", following, headers={"HX-Request": "true"}).status_code == 204
    answered(int(number), fence, lines=["second"])
    assert "second" in page(browser, address)
    assert browser.post("/hosts/web-1/web/log/", following, headers={"HX-Request": "true"}).status_code == 204
    assert entries() == kept
    execute("update shiftboss_command set asked_at = now() - interval '11 minutes', expires_at = now()")
    refused = browser.post("/hosts/web-1/web/log/", following, headers={"HX-Request": "true"})
    assert (refused.status_code, entries()) == (409, kept)
    anew = sent(browser, address)
    assert anew.headers["Location"] != address
    assert entries() == kept + 1


def test_who_looks_at_a_log_that_somebody_else_asked_for_is_asked_to_ask(browser: Client, admin: Client) -> None:
    fence = a_host("web-1", {"name": "web"}, {"name": "other"})
    address = a_log(browser, fence, "the secret of kim")
    text = page(admin, address)
    assert "the secret of kim" not in text
    assert "Show the log of web on web-1?" in text
    page(browser, address.replace("/web/", "/other/"), status=404)
    page(browser, "/hosts/web-1/web/log/?command=999999", status=404)
    number = address.rpartition("=")[2]
    assert "the secret of kim" not in page(admin, f"/commands/{number}/")
    for who, role, expected in (("kim2", "operator", None), ("lou", "viewer", None)):
        caller = Caller(token=token_of(user(who, role=role)))
        assert told(caller.get(f"commands/{number}"))["result"] is expected


def test_lines_are_found_in_any_case_and_what_is_no_list_is_no_log() -> None:
    assert logs.shown(None) is None
    assert logs.shown("text") is None
    found = logs.shown(["ERROR a", "fine", 7], "error")
    assert found
    assert [(line.number, line.text) for line in found.lines] == [(1, "ERROR a")]


@pytest.mark.parametrize("name", ["a/b", "..", "a%2Fb", "ü ?#", "x" * 90, "worker;1"])
def test_a_host_of_any_name_has_its_pages(browser: Client, name: str) -> None:
    a_host(name, {"name": name})
    text = page(browser)
    [address] = set(re.findall(r'href="(/hosts/[^"]+/[^"]+/)"', text)) - set(
        re.findall(r'href="([^"]*log/)"', text)
    )
    assert page(browser, unescape(address))
    caller = Caller(token=token_of(user("ci")))
    assert told(caller.get("hosts"))["hosts"][0]["name"] == name


def test_foreign_text_of_agents_is_text(browser: Client) -> None:
    fence = a_host(
        HOSTILE[:90],
        {"name": HOSTILE, "trouble": HOSTILE, "state": HOSTILE, "pool": HOSTILE},
        trouble=HOSTILE,
        hostname=HOSTILE,
        code_version=HOSTILE,
    )
    noted(fence, life(1.0, program=HOSTILE, pool=HOSTILE, log=HOSTILE * 100), host=HOSTILE[:90])
    text = page(browser)
    addresses = set(re.findall(r'href="(/hosts/[^"]+)"', text))
    for address in ["/hosts/", *map(unescape, addresses)]:
        shown = browser.get(address).content.decode()
        assert "<script>alert" not in shown, address
        assert not re.search("[\u202e\x1b]", re.sub(r'\s(?:value|data-key)="[^"]*"', "", shown)), address


def test_lives_are_told_in_order_with_a_gap_before_or_after_them() -> None:
    fence = a_host("web-1", WORKER)
    noted(fence, life(3.0), life(1.0))
    [host] = run(hosts.hosts(authority=scenes.SYSTEM))
    found = run(processes.lives(authority=scenes.SYSTEM))
    assert [one.gap for one in told_lives.told(found, host)] == [None, None]
    execute("update shiftboss_host set gap_from = now() - interval '9 h', gap_until = now() - interval '8 h'")
    [host] = run(hosts.hosts(authority=scenes.SYSTEM))
    assert all(one.life for one in told_lives.told(found, host))
    [only] = told_lives.told([], host)
    assert only.gap


def scope_of(_: Any) -> Any:
    """Everybody is narrowed."""
    from shiftboss import Scoped

    return Scoped(queues=["mail"])


def test_who_is_narrowed_to_some_queues_is_refused_with_a_word_that_says_why(browser: Client) -> None:
    a_host("web-1", WORKER)
    assert 'data-go="h"' in page(browser, "/jobs/")
    try:
        with override_settings(SHIFTBOSS={"STAFF_SCOPE": f"{__name__}.scope_of"}):
            conf.get.cache_clear()
            assert 'data-go="h"' not in page(browser, "/jobs/")
            for address in ("/hosts/", "/hosts/web-1/worker-default-1/", "/hosts/web-1/worker-default-1/log/"):
                assert "This is not within your scope" in page(browser, address, status=403)
            typed = {"reason": "r"}
            refused = browser.post("/hosts/web-1/worker-default-1/restarts/", typed)
            assert refused.status_code == 403
            caller = Caller(token=token_of(user("ci")))
            for path in ("hosts", "hosts/web-1", "hosts/web-1/programs/worker-default-1", "commands/1"):
                problem(caller.get(path), 403, "not_allowed")
            problem(caller.post("hosts/web-1/programs/worker-default-1/drain", typed), 403, "not_allowed")
    finally:
        conf.get.cache_clear()
    assert run(commands.commands(authority=scenes.SYSTEM)) == []


@pytest.mark.requirement("C5")
def test_the_api_tells_of_hosts_and_programs_and_asks_them() -> None:
    caller = Caller(token=token_of(user("ci")))
    fence = a_host("web-1", WORKER, {"name": "web"})
    worker = scenes.worker(host="web-1", pid=4711)
    job_id = scenes.job()
    scenes.claimed(worker)
    noted(fence, life(2.0, log="the end"), life(1.0, lasted=None))
    [listed] = told(caller.get("hosts"))["hosts"]
    assert told(caller.get("hosts/web-1"))["programs"] == listed["programs"]
    one = {program["name"]: program for program in listed["programs"]}["worker-default-1"]
    assert (one["worker_id"], one["jobs"], one["last_day"]) == (
        str(worker),
        [str(job_id)],
        {"ends": 1, "wrong": 1},
    )
    assert (one["last_end"]["signal"], one["state"]) == (9, "RUNNING")
    detail = told(caller.get("hosts/web-1/programs/worker-default-1"))
    assert [life_of["log"] for life_of in detail["lives"]] == [None, "the end"]
    assert detail["acts"] == ["restart_program", "drain_program"]
    looking = Caller(token=token_of(user("vi", role="viewer")))
    seen = told(looking.get("hosts/web-1/programs/worker-default-1"))
    assert ([life_of["log"] for life_of in seen["lives"]], seen["acts"]) == ([None, None], [])

    problem(caller.post("hosts/web-1/programs/web/restart"), 422, "reason_needed")
    done = told(caller.post("hosts/web-1/programs/web/tail"))
    command = told(caller.get(f"commands/{done['command_id']}"))
    assert (command["verb"], command["state"], command["program"]) == ("tail", "waiting", "web")
    answered(int(done["command_id"]), fence, lines=["a line"])
    assert told(caller.get(f"commands/{done['command_id']}"))["result"] == {"lines": ["a line"]}
    scaled = told(caller.post("hosts/web-1/pools/default/scale", {"count": 1, "reason": "r"}))
    assert told(caller.get(f"commands/{scaled['command_id']}"))["count"] == 1
    problem(caller.post("hosts/web-1/pools/default/scale", {"count": 1001, "reason": "r"}), 422, "invalid")
    for path in ("hosts/web-9", "hosts/web-1/programs/nothing"):
        problem(caller.get(path), 404, "no_such_program")
    for number in ("0", "x", "9" * 30, "99999"):
        problem(caller.get(f"commands/{number}"), 404, "no_such_command")
    problem(caller.post("hosts/web-9/programs/web/start"), 404, "no_such_program")
    execute("update shiftboss_host set stopped_at = now()")
    problem(caller.post("hosts/web-1/programs/web/start"), 409, "host_silent")
