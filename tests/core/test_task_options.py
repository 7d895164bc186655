"""The options of a task: what is refused where it is declared, and the configuration that jobs are given."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from shiftboss import conf
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.payload import encode_arguments
from shiftboss.queue.retry import LONGEST_SECONDS
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.tasks import attempts_of, config_of, task
from tests.core.test_payload import keys, text, values
from tests.store.tasks import add, fetch, send, with_context

pytestmark = pytest.mark.requirement("R8")

ADD = "tests.store.tasks.add"
ENORMOUS = 10**5000


@pytest.fixture
def configured(settings: Any) -> Iterator[Any]:
    """Sets `SHIFTBOSS` for a test."""

    def configure(**given: Any) -> None:
        settings.SHIFTBOSS = given
        conf.get.cache_clear()

    yield configure
    conf.get.cache_clear()


class Gone(Exception):
    """What a handler may raise."""


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no time": ({"timeout": 0}, "timeout must be the seconds of one attempt, above 0 and at most 31536000, not 0"),
    "a negative time": ({"timeout": -1.5}, "timeout must be"),
    "a time that is no number": ({"timeout": float("nan")}, "timeout must be .* not nan"),
    "an endless time": ({"timeout": float("inf")}, "timeout must be"),
    "a time beyond all numbers": ({"timeout": ENORMOUS}, "timeout must be .* not a int"),
    "a time longer than a year": ({"timeout": LONGEST_SECONDS + 1}, "timeout must be"),
    "a time in words": ({"timeout": "30"}, "timeout must be .* not '30'"),
    "a time that is a yes": ({"timeout": True}, "timeout must be"),
    "an enormous number of attempts": ({"max_attempts": ENORMOUS}, "max_attempts must be a whole number"),
    "unique as a text": ({"unique": "order"}, "unique must be True or False, not 'order'"),
    "unique as a number": ({"unique": 1}, "unique must be True or False"),
    "unique and a key": ({"unique": True, "key": "k"}, "leave out either unique or key"),
    "durable as a yes": ({"durable": True}, "durable must be 'each', or left out, not True"),
    "another durable": ({"durable": "batch"}, "durable must be 'each'"),
    "an exception's name": ({"retry_on": "OSError"}, "retry_on takes exception types, .* not 'OSError'"),
    "an exception itself": ({"discard_on": (Gone("x"),)}, "discard_on takes exception types"),
    "what is no Exception": ({"retry_on": KeyboardInterrupt}, "subclasses of Exception, not .*KeyboardInterrupt"),
    "another class": ({"discard_on": [Gone, int]}, "subclasses of Exception, not .*int"),
    "one exception for both": ({"retry_on": (OSError, Gone), "discard_on": Gone}, "both name Gone"),
    "a backoff in words": (
        {"backoff": "5"},
        "backoff must be seconds, a list of seconds or a function of .*, not '5'",
    ),
    "a backoff of none": ({"backoff": []}, "backoff must have at least one number of seconds"),
    "a backoff into the past": ({"backoff": [1, -1]}, "backoff must be from 0 to 31536000 seconds, not -1"),
    "a backoff beyond all numbers": ({"backoff": ENORMOUS}, "backoff must be from 0 .* not a int"),
    "a backoff that is a yes": ({"backoff": True}, "backoff must be seconds, .* not True"),
    "a set of backoffs": ({"backoff": {1}}, "backoff must be seconds, a list of seconds or a function"),
    "a key that is no text": ({"key": 7}, "key"),
    "an empty key": ({"key": ""}, "key"),
    "follow_up as a text": ({"follow_up": "later"}, "follow_up must be True or False, not 'later'"),
    "a tag that is no text": ({"tags": [7]}, "tags: each is 1 to 100 printable characters, not '7'"),
    "too many tags": ({"tags": [str(n) for n in range(21)]}, "tags: at most 20, not 21"),
    "a tenant that is no text": ({"tenant": 7}, "tenant: each is 1 to 200 printable characters, not '7'"),
    "an empty tenant": ({"tenant": ""}, "tenant: each is 1 to 200 printable characters"),
    "a watcher that is no text": ({"watchers": [7]}, "watchers: Owner takes a str, not int"),
    "a watcher without a name": ({"watchers": [""]}, "watchers: an Owner needs a non-empty id"),
    "too many watchers": ({"watchers": [str(n) for n in range(101)]}, "at most 100 watchers, not 101"),
    "a resource that nothing can lend": ({"resource": "smtp"}, "resource .* context alone: .* takes_context=True"),
    "secrets that nothing can tell": ({"secrets": ["key"]}, "secrets .* context alone: .* takes_context=True"),
    "a resource without a name": ({"resource": ""}, "resource: a name is 1 to 100 printable characters"),
    "a deadline without a zone": ({"deadline": datetime(2050, 1, 1)}, "deadline must be an aware datetime"),
    "a deadline that is no time": ({"deadline": 7}, "deadline must be an aware datetime"),
    "a resource that is no text": ({"resource": 7}, "resource: a name is"),
    "a resource with a NUL": ({"resource": "a\x00"}, "resource: a name is"),
    "a resource with a surrogate": ({"resource": "a\ud800"}, "resource: a name is"),
    "a resource with a long name": ({"resource": "x" * 101}, "resource: a name is"),
    "secrets as one text": ({"secrets": "token"}, "secrets must be a list of texts, not 'token'"),
    "a secret that is no text": ({"secrets": [7]}, "secrets: a name is"),
    "a secret with a surrogate": ({"secrets": ["a\ud800"]}, "secrets: a name is"),
    "too many secrets": ({"secrets": [str(n) for n in range(21)]}, "secrets: at most 20 names, not 21"),
}


@pytest.mark.parametrize(("options", "told"), REFUSED.values(), ids=REFUSED)
def test_an_option_that_cannot_be_is_refused_where_it_is_said(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidJob, match=told):
        task(**options)(add.func)
    with pytest.raises(InvalidJob, match=told):
        add.using(**options)


def test_options_that_can_be_are_held_as_they_are_meant() -> None:
    made = with_context.using(
        timeout=1.5, retry_on=OSError, discard_on=[Gone, KeyError], durable="each", resource="smtp", secrets=["t"]
    )
    assert (made.timeout, made.durable, made.resource, made.secrets) == (1.5, "each", "smtp", ("t",))
    assert (made.retry_on, made.discard_on) == ((OSError,), (Gone, KeyError))
    assert add.using(isolation="process").isolation == "process"
    assert fetch.using(isolation="process").isolation == "process"
    assert add.using(unique=True).using(unique=False, key="k").key == "k"


@pytest.mark.requirement("L15")
def test_the_configuration_of_a_task_is_what_its_options_say() -> None:
    assert config_of(add, "default") == TaskConfig(task=ADD)
    assert config_of(fetch, "default").isolation == "async"
    assert config_of(fetch.using(isolation="thread"), "default").isolation == "thread"
    assert config_of(send, "mail").backoff == (1.0, 60.0)
    made = with_context.using(
        timeout=3, isolation="process", backoff=2, durable="each", resource="smtp", secrets=["t"], retry_on=Gone
    )
    assert config_of(made, "default") == TaskConfig(
        task="tests.store.tasks.with_context",
        isolation="process",
        timeout_seconds=3.0,
        backoff=2.0,
        durable="each",
        resource="smtp",
        retry_on=(f"{__name__}.Gone",),
        secrets=("t",),
    )
    assert config_of(add.using(backoff=lambda error, failures: 1), "default").backoff == "function"
    assert config_of(add.using(discard_on=OSError), "default").discard_on == ("builtins.OSError",)
    read = config_of(made, "default")
    assert TaskConfig.from_json(read.to_json()).revision == read.revision


def test_what_the_settings_say_of_a_queue_goes_before_what_a_task_says(configured: Any) -> None:
    own = add.using(timeout=3, backoff=[1, 2], max_attempts=2)
    configured(
        MAX_ATTEMPTS=7, QUEUES={"slow": {"timeout_seconds": 60, "backoff_seconds": 9, "max_attempts": 3}, "q": {}}
    )
    for queue, expected in (
        ("slow", (60.0, 9.0, 3)),
        ("q", (3.0, (1.0, 2.0), 2)),
        ("default", (3.0, (1.0, 2.0), 2)),
    ):
        config = config_of(own, queue)
        assert (config.timeout_seconds, config.backoff, attempts_of(own, queue)) == expected
    assert [attempts_of(add, queue) for queue in ("slow", "q")] == [3, 7]


def test_a_queues_endless_times_are_bounded_before_they_are_stored(configured: Any) -> None:
    configured(QUEUES={"q": {"timeout_seconds": 2**31 - 1, "backoff_seconds": 2**31 - 1}})
    config = config_of(add, "q")
    assert (config.timeout_seconds, config.backoff) == (LONGEST_SECONDS, LONGEST_SECONDS)


@pytest.mark.requirement("P2", "N5")
def test_a_unique_tasks_key_is_made_of_its_name_and_the_arguments() -> None:
    unique = add.using(unique=True)
    key = unique.key_of([1], {"b": 2})
    assert key is not None
    assert key.startswith(ADD)
    assert key == unique.key_of([1, 2], {}) == unique.key_of([], {"b": 2, "a": 1})
    others = {unique.key_of(*given) for given in (([1], {}), ([2], {"b": 1}), (["1", 2], {}), ([1, [2]], {}))}
    assert len(others | {key}) == 5
    assert send.using(unique=True).key_of([1], {}) != fetch.using(unique=True).key_of([1], {})
    assert with_context.using(unique=True).key_of([1], {}) == with_context.using(unique=True).key_of([], {"a": 1})


@pytest.mark.requirement("P2")
def test_a_unique_tasks_key_is_the_same_in_every_process() -> None:
    given = {"to": {"z": [1, None], "a": UUID(int=7)}}
    expected = "40fcf44632080960fea0e80b8d72a5e204f42be39c0d0d6d7e771312de1bac03"
    assert send.using(unique=True).key_of([], given) == f"tests.store.tasks.send {expected}"


@pytest.mark.requirement("P2")
@hypothesis.settings(suppress_health_check=[HealthCheck.too_slow])
@given(values, values)
def test_two_arguments_have_one_key_only_where_they_are_stored_alike(one: Any, other: Any) -> None:
    unique = send.using(unique=True)
    alike = _stored(one) == _stored(other)
    assert (unique.key_of([one], {}) == unique.key_of([other], {})) == alike


def _stored(value: Any) -> Any:
    return json.dumps(json.loads(encode_arguments([value], {}, max_bytes=2**20)), sort_keys=True)


@pytest.mark.requirement("P2", "P5")
def test_arguments_that_cannot_be_stored_make_no_key() -> None:
    unique = send.using(unique=True)
    for given_, told in (("x" * 10 * 2**20, "more than 1,048,576"), ("\x00", "NUL"), ("\ud800", "surrogate")):
        with pytest.raises(InvalidJob, match=told):
            unique.key_of([given_], {})
    # What does not fit the function is told by the worker; until then it is as unique as any other.
    assert unique.key_of([1, 2, 3], {}) == unique.key_of([1, 2, 3], {}) != unique.key_of([1, 2], {})


@pytest.mark.requirement("P2")
@given(st.dictionaries(keys, st.integers() | text, max_size=3))
def test_the_order_of_names_does_not_matter(given_: dict[str, Any]) -> None:
    unique = send.using(unique=True)
    backwards = dict(reversed(given_.items()))
    assert unique.key_of([given_], {}) == unique.key_of([backwards], {})
