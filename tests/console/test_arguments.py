"""Arguments: seen by those who may, as an act that the audit keeps; and run again with others."""

import json
import re
from html import unescape

import pytest
from django.test import Client

from shiftboss import cli
from shiftboss.console import differing
from shiftboss.permissions import VIEW, VIEW_ARGUMENTS
from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate, read
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.console.callers import Caller, token_of, told, user

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B14", "C4")]
SYSTEM = System()
ARGS = '{"args": [1970670598291982290, 0.30000000000000004, "kim@example.org"], "kwargs": {}}'
WORD = "kim@example.org"


def acts_on(job_id: int) -> list[str]:
    return [entry.act for entry in run(audit.entries(authority=SYSTEM, job_id=job_id))]


def stored(job_id: int) -> str:
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job is not None
    return job.args


def text_of(browser: Client, path: str) -> str:
    return unescape(browser.get(path).content.decode())


def edited(page: str) -> str:
    """What stands in the form's field."""
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found
    return unescape(found[1])


def reveal(browser: Client, job_id: int) -> None:
    answer = browser.post(f"/jobs/{job_id}/reveals/", {"reason": "which invoice", "request_id": "r1"})
    assert answer.status_code == 303


def test_a_page_shows_arguments_only_after_they_were_revealed_which_the_audit_keeps(browser: Client) -> None:
    job_id = scenes.job(args=ARGS)
    page = text_of(browser, f"/jobs/{job_id}/")
    assert WORD not in page
    assert f'href="/jobs/{job_id}/reveals/"' in page
    assert acts_on(job_id) == []
    reveal(browser, job_id)
    page = text_of(browser, f"/jobs/{job_id}/")
    assert "1970670598291982290" in page
    assert "0.30000000000000004" in page
    assert WORD in page
    [entry] = run(audit.entries(authority=SYSTEM, job_id=job_id))
    assert (entry.act, entry.actor_name, entry.reason) == ("reveal", "kim", "which invoice")
    assert WORD not in entry.asked + entry.before + entry.after


def test_what_one_has_revealed_another_login_does_not_see_nor_the_same_one_for_another_job(
    browser: Client,
) -> None:
    job_id, other_id = scenes.job(args=ARGS), scenes.job(args=ARGS)
    reveal(browser, job_id)
    assert WORD not in text_of(browser, f"/jobs/{other_id}/")
    another = Client()
    another.force_login(scenes.person("lee", role="operator"))
    assert WORD not in text_of(another, f"/jobs/{job_id}/")


def test_what_was_revealed_is_hidden_again_after_a_while(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftboss.console.revealing.REVEALED_SECONDS", 0.0)
    job_id = scenes.job(args=ARGS)
    reveal(browser, job_id)
    assert WORD not in text_of(browser, f"/jobs/{job_id}/")


def test_who_lacks_the_permission_is_told_its_name_and_reveals_nothing() -> None:
    job_id = scenes.job(args=ARGS)
    client = Client()
    client.force_login(scenes.person("vera", VIEW))
    page = text_of(client, f"/jobs/{job_id}/")
    assert WORD not in page
    assert f"It needs the permission <code>{VIEW_ARGUMENTS}</code>" in page
    answer = client.post(f"/jobs/{job_id}/reveals/", {"reason": "x"})
    assert answer.status_code == 403
    assert WORD not in text_of(client, f"/jobs/{job_id}/")
    assert acts_on(job_id) == []


def test_the_api_tells_arguments_by_their_digest_and_reveals_them_as_an_act() -> None:
    job_id = scenes.job(args=ARGS)
    caller = Caller(token=token_of(user("kim")))
    shown = caller.get(f"jobs/{job_id}")
    assert WORD not in shown.content.decode()
    assert told(shown)["args"] is None
    assert len(told(shown)["args_sha256"]) == 64
    revealed = caller.post(f"jobs/{job_id}/reveal", {"reason": "audit"})
    assert revealed.status_code == 200
    assert "0.30000000000000004" in revealed.content.decode()
    assert json.loads(revealed.content)["args"]["args"][2] == WORD
    assert acts_on(job_id) == ["reveal"]


def test_the_command_line_shows_a_job_without_arguments_and_reveals_them_as_an_act(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job_id = scenes.job(args=ARGS)
    for words in (["jobs", "show", str(job_id)], ["jobs", "show", str(job_id), "--format", "json"]):
        assert cli.main(words) == 0
    assert WORD not in capsys.readouterr().out
    assert cli.main(["jobs", "reveal", str(job_id)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(ARGS)
    assert acts_on(job_id) == ["reveal"]


def test_other_arguments_are_compared_first_and_then_run_as_a_linked_job(browser: Client) -> None:
    job_id = scenes.job(args=ARGS)
    run(operate.quarantine([job_id], authority=SYSTEM, by="lee"))
    address = f"/jobs/{job_id}/edits/"
    asked = browser.get(address)
    assert asked.headers["Location"] == f"/jobs/{job_id}/reveals/?then=edits"
    answer = browser.post(asked.headers["Location"], {"reason": "", "request_id": "r"})
    assert answer.headers["Location"] == address
    text = edited(browser.get(address).content.decode())
    assert json.loads(text) == json.loads(ARGS)
    other = text.replace(WORD, "lee@example.org")
    page = browser.post(address, {"args": other, "reason": "typo", "request_id": "e1"}).content.decode()
    assert "What differs" in page
    assert '<pre class="old">− ' in page
    assert stored(job_id) == ARGS  # nothing has happened yet
    digest = re.search(r'name="confirmed" value="(\w{64})"', page)
    assert digest
    done = browser.post(address, {"args": other, "confirmed": digest[1], "reason": "typo", "request_id": "e1"})
    assert done.status_code == 303
    [row] = [row for row in run(read.jobs(authority=SYSTEM, state=State.AVAILABLE)) if row.rerun_of == job_id]
    assert stored(row.id) == ARGS.replace(WORD, "lee@example.org")
    assert scenes.state_of(job_id) is State.QUARANTINED
    assert f"Job {row.id} runs job {job_id} with other arguments." in re.sub(
        r"<[^>]*>", "", text_of(browser, done.headers["Location"])
    )
    entry = run(audit.entries(authority=SYSTEM, job_id=job_id))[0]
    assert entry.act == "edit"
    assert "example.org" not in entry.asked + entry.before + entry.after


def test_arguments_that_changed_after_the_comparison_are_compared_again(browser: Client) -> None:
    job_id = scenes.completed_job(scenes.worker(), args=ARGS)
    reveal(browser, job_id)
    typed = {"args": ARGS, "confirmed": "0" * 64, "reason": "", "request_id": "e2"}
    page = browser.post(f"/jobs/{job_id}/edits/", typed)
    assert page.status_code == 200
    assert "Nothing: the arguments are the same." in page.content.decode()
    assert not [row for row in run(read.jobs(authority=SYSTEM, state=State.AVAILABLE)) if row.rerun_of]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "This field is required"),
        ("{", "the arguments are no JSON"),
        ("[1]", "a list and an object"),
        ('{"args": [], "kwargs": {}, "more": 1}', "a list and an object"),
        ('{"args": [NaN], "kwargs": {}}', "NaN is no number"),
        ('{"args": ["\\u0000"], "kwargs": {}}', "NUL"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_arguments_that_cannot_be_are_refused_with_what_was_typed(browser: Client, typed: str, says: str) -> None:
    job_id = scenes.job_in(State.COMPLETED)
    reveal(browser, job_id)
    page = browser.post(f"/jobs/{job_id}/edits/", {"args": typed, "reason": "", "request_id": "e3"})
    assert page.status_code == 422
    assert says in unescape(page.content.decode())
    assert edited(page.content.decode()) == typed


@pytest.mark.parametrize("state", [State.AVAILABLE, State.RUNNING])
def test_a_job_that_may_still_run_by_itself_is_not_copied(browser: Client, state: State) -> None:
    job_id = scenes.job_in(state)
    reveal(browser, job_id)
    page = browser.get(f"/jobs/{job_id}/edits/")
    assert page.status_code == 409
    assert "has moved on" in page.content.decode()


def test_a_difference_shows_changed_lines_with_those_around() -> None:
    before = json.dumps({"args": [f"item {n} of many that are long" for n in range(40)], "kwargs": {}})
    after = before.replace("item 20 ", "item twenty ")
    told = differing.lines(before, after)
    assert told is not None
    assert [line.kind for line in told] == ["gap", "same", "same", "same", "old", "new", "same", "same", "same"]
    assert differing.lines(before, before) == []
    assert differing.lines("[" + "1," * 20_000 + "1]", "[" + '"x",' * 40_000 + "1]") is None
