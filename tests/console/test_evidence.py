"""What of an attempt somebody sees: facts are for all who see jobs, what was written needs a permission."""

import hashlib
import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftboss.console import evidence, pretty, sight
from shiftboss.permissions import VIEW, VIEW_TRACEBACK
from shiftboss.queue.outcomes import Lost, Released
from shiftboss.queue.store import lease
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.console.callers import Caller, token_of, told, user

pytestmark = pytest.mark.requirement("L29")

ARGS = '{"args": [4711], "kwargs": {}}'
DIGEST = hashlib.sha256(ARGS.encode()).hexdigest()
WORDS = "wrote-this-before-it-failed"
KEPT: dict[str, Any] = {
    "host": "web-7",
    "pid": 48213,
    "args_sha256": DIGEST,
    "cpu_ms": 384,
    "memory_kb": 95_232,
    "memory_shared": True,
    "output": f"first line\n{WORDS}\n",
}
NOT_SHOWN = "Not shown: traceback, output. It needs the permission shiftboss.view_traceback."


def failed_job(kept: object = KEPT, **how: Any) -> int:
    """A job that failed as often as it may and has kept this; its id."""
    worker = scenes.worker()
    job_id = scenes.job(args=ARGS, max_attempts=1)
    scenes.failed(scenes.claimed(worker), worker, evidence=json.dumps(kept, ensure_ascii=False), **how)
    return job_id


def browser_of(*permissions: str, role: str | None = None) -> Client:
    client = Client()
    client.force_login(scenes.person("vera", *permissions, role=role))
    return client


def attempt_of(browser: Client, job_id: int) -> str:
    """The part of a job's page that tells of its one attempt."""
    page = browser.get(f"/jobs/{job_id}/").content.decode()
    found = re.search(r'<li id="fence-1-[a-z]+">(.*?)</li>', page, re.DOTALL)
    assert found
    return found[1]


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())


def facts_of(attempt: str) -> dict[str, str]:
    [listed] = re.findall(r'<dl class="evidence">(.*?)</dl>', attempt, re.DOTALL)
    return {plain(name): plain(value) for name, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", listed)}


def written_of(attempt: str) -> list[str]:
    return [unescape(text) for text in re.findall(r'written".*?<pre>(.*?)</pre>', attempt, re.DOTALL)]


# Who sees what


@pytest.mark.django_db
def test_an_operator_reads_what_an_attempt_has_kept(browser: Client) -> None:
    attempt = attempt_of(browser, failed_job())
    assert facts_of(attempt) == {
        "Ran on": "web-7, process 48213",
        "CPU": "384 ms",
        "Memory": "peak 93.0 MiB shared with other jobs of the process",
        "Arguments": f"{DIGEST[:12]} those of the job",
    }
    assert f'title="{DIGEST}"' in attempt
    assert written_of(attempt) == [f"first line\n{WORDS}"]
    assert "mailer.deliver(invoice)" in attempt
    assert "Not shown" not in attempt
    assert "More evidence" not in attempt


@pytest.mark.django_db
def test_a_viewer_sees_the_facts_and_is_told_which_permission_the_rest_needs() -> None:
    attempt = attempt_of(browser_of(role="viewer"), failed_job())
    assert facts_of(attempt)["Ran on"] == "web-7, process 48213"
    assert "mailbox unavailable" in attempt
    assert NOT_SHOWN in plain(attempt)
    assert WORDS not in attempt
    assert "Last output" not in attempt
    assert "mailer.deliver" not in attempt


@pytest.mark.django_db
def test_it_is_that_permission_alone_that_shows_them() -> None:
    attempt = attempt_of(browser_of(VIEW, VIEW_TRACEBACK), failed_job())
    assert WORDS in attempt
    assert "mailer.deliver(invoice)" in attempt
    assert "Not shown" not in attempt


@pytest.mark.django_db
def test_nothing_is_said_to_be_withheld_where_nothing_was_written() -> None:
    worker = scenes.worker()
    job_id = scenes.job()
    [held] = scenes.claimed(worker)
    run(
        lease.release(
            [(held.lease, Released("shutdown", '{"host": "web-7"}'))], authority=scenes.SYSTEM, worker_id=worker
        )
    )
    attempt = attempt_of(browser_of(role="viewer"), job_id)
    assert facts_of(attempt) == {"Ran on": "web-7"}
    assert "Not shown" not in attempt


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kept", "parts"),
    [
        ({"not_storable": f"{{'output': {WORDS!r}}}"}, ["traceback", "not_storable"]),
        ([{"output": WORDS}], ["traceback", "evidence"]),
        ({"output": {"of": [WORDS]}, "checkpoint": 1}, ["traceback", "output"]),
        ({"padding": "x" * sight.READABLE_CHARACTERS, "output": WORDS}, ["traceback", "evidence"]),
    ],
)
def test_what_was_written_is_withheld_in_whatever_shape_it_was_kept(kept: object, parts: list[str]) -> None:
    job_id = failed_job(kept)
    person = user("vera", "viewer")
    client = Client()
    client.force_login(person)
    assert WORDS not in client.get(f"/jobs/{job_id}/").content.decode()
    answered = Caller(token=token_of(person)).get(f"jobs/{job_id}")
    assert WORDS not in answered.content.decode()
    [attempt] = told(answered)["attempts"]
    assert attempt["withheld"] == {"permission": VIEW_TRACEBACK, "parts": parts}


@pytest.mark.django_db
def test_the_api_withholds_what_the_page_does_and_names_the_permission() -> None:
    job_id = failed_job(KEPT | {"number": 12345678901234567890})
    whole = told(Caller(token=token_of(user("kim"))).get(f"jobs/{job_id}"))["attempts"][0]
    assert whole["evidence"] == KEPT | {"number": 12345678901234567890}
    assert whole["traceback"] == scenes.TRACEBACK
    assert whole["withheld"] is None
    less = told(Caller(token=token_of(user("vera", "viewer"))).get(f"jobs/{job_id}"))["attempts"][0]
    assert less["withheld"] == {"permission": "shiftboss.view_traceback", "parts": ["traceback", "output"]}
    assert less["traceback"] is None
    assert less["evidence"] == {name: value for name, value in whole["evidence"].items() if name != "output"}
    same = set(whole) - {"traceback", "evidence", "withheld"}
    assert {name: less[name] for name in same} == {name: whole[name] for name in same}


# How it is laid out


@pytest.mark.django_db
def test_a_death_names_its_signal_and_digests_that_differ_are_told(browser: Client) -> None:
    worker = scenes.worker()
    job_id = scenes.job(args=ARGS)
    [held] = scenes.claimed(worker)
    kept = {"signal": 11, "cause": "killed by SIGSEGV", "past_deadline": True, "args_sha256": "0" * 64}
    lost = Lost(alone=True, suspect=True, code="executor_died", message="it died", evidence=json.dumps(kept))
    run(lease.reap_own([(held.lease, lost)], authority=scenes.SYSTEM, worker_id=worker))
    assert facts_of(attempt_of(browser, job_id)) == {
        "Its process": "killed by SIGSEGV past the deadline that its worker had set",
        "Arguments": "000000000000 not those that the job has now",
    }


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"signal": 11, "cause": "killed by SIGSEGV", "past_deadline": False}, "killed by SIGSEGV"),
        ({"signal": 9}, "killed by SIGKILL"),
        ({"signal": 63_000}, "killed by signal 63000"),
        ({"exit_code": 0}, "exited with 0"),
        ({"exit_code": 7, "cause": "exited with 7"}, "exited with 7"),
        ({"signal": 9, "cause": "out of memory"}, "out of memory (killed by SIGKILL)"),
        ({"cause": "out of memory"}, "out of memory"),
    ],
)
def test_the_end_of_a_process_is_said_once_and_by_name(kept: dict[str, Any], said: str) -> None:
    read = evidence.read(json.dumps(kept), args_sha256=DIGEST)
    assert [(fact.name, fact.value) for fact in read.facts] == [("Its process", said)]
    assert read.rest is None


@pytest.mark.django_db
def test_a_checkpoint_is_told_digit_by_digit_and_a_long_one_by_its_length(browser: Client) -> None:
    kept = '{"checkpoint": {"after": 12345678901234567890.50}, "checkpoint_characters": 120345}'
    read = evidence.read(kept, args_sha256=DIGEST)
    assert read.checkpoint == '{"after": 12345678901234567890.50}'
    assert [fact.value for fact in read.facts] == ["120,345 characters, too long to be kept with the attempt"]
    attempt = attempt_of(browser, failed_job({"checkpoint": {"page": 3}}))
    assert "Checkpoint at its end" in attempt
    assert "{&quot;page&quot;: 3}" in attempt


@pytest.mark.django_db
def test_what_other_versions_have_kept_is_shown_as_json(browser: Client) -> None:
    odd = {
        "host": ["a", "b"],
        "pid": "no number",
        "cpu_ms": -4,
        "memory_kb": 1.5,
        "args_sha256": None,
        "signal": 10**40,
        "exit_code": True,
        "cause": {},
        "past_deadline": "yes",
        "output": 12,
        "checkpoint_characters": [],
        "memory_shared": 1,
        "oom_score": 901,
    }
    attempt = attempt_of(browser, failed_job(odd))
    [document] = re.findall(r'<pre class="document"[^>]*>(.*?)</pre>', attempt, re.DOTALL)
    assert json.loads(unescape(document)) == odd
    assert "<dl" not in attempt
    assert "h" * 400 in attempt_of(browser, failed_job({"host": "h" * 400}))
    assert "[1, {&quot;a&quot;: 2}, " in attempt_of(browser, failed_job([1, {"a": 2}]))


@pytest.mark.django_db
def test_hostile_evidence_is_shown_harmless(browser: Client) -> None:
    bad = "<script>alert(1)</script>\u202egpj.exe\u2066\x1b[2J\x07\x9b31m\u2028"
    kept = {
        **dict.fromkeys(("host", "cause", "args_sha256"), bad),
        "output": f"\x1b[31;1mred\x1b[0m\r\n{bad}\n" + "<img src=x onerror=alert(1)>",
        "checkpoint": {bad: bad},
        bad: bad,
    }
    attempt = attempt_of(browser, failed_job(kept))
    for tag in ("<script", "<img"):
        assert tag not in attempt
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\x00-\x08\x0e-\x1f\x7f-\x9f]", attempt)
    assert not re.search(r"\s(style|on[a-z]+)=", re.sub(r">[^<]*<", "><", attempt))
    text = plain(attempt)
    assert "red <script>alert(1)</script>\\u202egpj.exe\\u2066\\x1b[2J\\x07" in text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "kept",
    [
        {"output": "line of output\n" * 25_000},
        {"output": "line of output\n" * 100_000},
        {"checkpoint": list(range(60_000))},
        {f"name {n}": n for n in range(60_000)},
    ],
    ids=["output", "more output", "checkpoint", "names"],
)
def test_huge_evidence_leaves_the_page_readable(browser: Client, kept: object) -> None:
    page = browser.get(f"/jobs/{failed_job(kept)}/").content.decode()
    assert len(page) < 300_000
    assert "is shown" in page


def test_deep_evidence_needs_no_stack() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    read = evidence.read(f'{{"checkpoint": {deep}, "output": "x"}}', args_sha256=DIGEST)
    assert (read.checkpoint, read.output) == (deep, "x")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*KEPT, "signal", "exit_code", "cause", "past_deadline", "checkpoint", "not_storable"])
OBJECTS = st.dictionaries(NAMES | st.text(), VALUES, max_size=8)


@settings(max_examples=40)
@given(OBJECTS, st.sampled_from([None, 2]))
def test_an_object_is_taken_apart_and_put_together_without_loss(value: dict[str, Any], indent: int | None) -> None:
    members = pretty.members(json.dumps(value, indent=indent))
    assert members is not None
    assert {name: json.loads(text) for name, text in members.items()} == value
    assert json.loads(pretty.of_members(members)) == value


@settings(max_examples=40)
@given(VALUES | st.text().map(lambda text: [text]))
def test_what_is_no_object_has_no_members(value: Any) -> None:
    if not isinstance(value, dict):
        assert pretty.members(json.dumps(value)) is None


@settings(max_examples=40)
@given(OBJECTS)
def test_nothing_that_was_kept_gets_lost_whatever_it_is(value: dict[str, Any]) -> None:
    read = evidence.read(json.dumps(value), args_sha256=DIGEST)
    rest = json.loads(read.rest or "{}")
    assert rest.items() <= value.items() or all(value[name] == rest[name] for name in rest)
    known = {*KEPT, "signal", "exit_code", "cause", "past_deadline", "checkpoint", "checkpoint_characters"}
    assert set(value) - known <= set(rest)
    for name in set(value) - set(rest) - {"past_deadline", "memory_shared"}:
        where = {"checkpoint": read.checkpoint, "output": read.output}.get(name, read.facts)
        assert where
