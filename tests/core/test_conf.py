"""Settings: read once, checked at start."""

import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from shiftboss.conf import MAX_QUEUE_LENGTH, Config, ConfigError, Pool, QueueOptions, read

pytestmark = pytest.mark.requirement("R8", "L7")

WORDS = {
    *("database", "pools", "queues", "queue_authorizer", "watch_authorizer", "secret_provider", "observers"),
    *("redact_keys", "redactor", "staff_scope"),
}
NUMBERS = [f.name.upper() for f in fields(Config) if f.name not in WORDS]
WHOLE = [
    "MAX_ATTEMPTS",
    "MAX_LOSSES",
    "MAX_ARGS_BYTES",
    "MAX_RESULT_BYTES",
    "PARTITION_DAYS_AHEAD",
    "OBSERVER_BACKLOG",
]


def test_nothing_given_is_all_defaults() -> None:
    config = read({})
    assert config == Config()
    assert config.pools == {"default": Pool(name="default")}
    assert config.lease_seconds >= 3 * config.heartbeat_seconds


def test_what_is_given_is_taken() -> None:
    config = read({"DATABASE": "jobs", "LEASE_SECONDS": 60, "MAX_ATTEMPTS": 3, "POOLS": {"io": {"threads": 32}}})
    assert (config.database, config.lease_seconds, config.max_attempts) == ("jobs", 60.0, 3)
    assert isinstance(config.lease_seconds, float)
    assert config.pools == {"io": Pool(name="io", threads=32)}
    assert Pool(name="io", processes=2, threads=32).slots == 64


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        read({}).lease_seconds = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 2**31, True, "5", None, [5]])
@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_that_cannot_work_names_its_key(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{key}.*must be a .*number above 0"):
        read({key: value})


@pytest.mark.parametrize("key", WHOLE)
def test_a_count_is_a_whole_number(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key}.*whole number"):
        read({key: 1.5})


def test_partitions_are_made_for_a_year_ahead_at_most() -> None:
    assert read({"PARTITION_DAYS_AHEAD": 366}).partition_days_ahead == 366
    with pytest.raises(ConfigError, match=r"PARTITION_DAYS_AHEAD.*at most 366"):
        read({"PARTITION_DAYS_AHEAD": 367})


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_settings_that_are_no_dict_are_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="SHIFTBOSS must be a dict"):
        read(given)


@pytest.mark.parametrize("key", ["LEASE", "lease_seconds", "", 5, None])
def test_an_unknown_key_is_named_beside_the_known_ones(key: Any) -> None:
    with pytest.raises(ConfigError, match=rf"unknown keys \[.*{key}.*LEASE_SECONDS"):
        read({key: 1})


@pytest.mark.parametrize("value", ["", None, 5])
def test_a_database_is_named_by_its_alias(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"DATABASE.*non-empty string"):
        read({"DATABASE": value})


def test_a_lease_shorter_than_three_heartbeats_names_both_ways_out() -> None:
    with pytest.raises(ConfigError, match="raise it to 30 or lower HEARTBEAT_SECONDS to 5"):
        read({"LEASE_SECONDS": 15, "HEARTBEAT_SECONDS": 10})
    assert read({"LEASE_SECONDS": 30, "HEARTBEAT_SECONDS": 10}).heartbeat_seconds == 10


POOLS: dict[str, tuple[Any, str]] = {
    "no dict": ([], "POOLS.*non-empty dict"),
    "none at all": ({}, "POOLS.*non-empty dict"),
    "a pool that is no dict": ({"io": 5}, r"POOLS.*'io'.*must be a dict"),
    "an unknown key": ({"io": {"thread": 5}}, r"POOLS.*'io'.*unknown keys \['thread'\].*'threads'"),
    "a name among its keys": ({"io": {"name": "x"}}, r"POOLS.*'io'.*unknown keys \['name'\]"),
    "a key that is no text": ({"io": {5: 5}}, r"POOLS.*'io'.*unknown keys"),
    "no queue": ({"io": {"queues": []}}, r"'io'.*\"queues\".*non-empty list"),
    "a queue instead of queues": ({"io": {"queues": "default"}}, r"'io'.*\"queues\".*non-empty list"),
    "queues that are a number": ({"io": {"queues": 5}}, r"'io'.*\"queues\".*non-empty list"),
    "queues that are true": ({"io": {"queues": True}}, r"'io'.*\"queues\".*non-empty list"),
    "a queue that is a number": ({"io": {"queues": [5]}}, r"'io'.*queue name is 1 to 100 printable.*'5'"),
    "a queue without name": ({"io": {"queues": [""]}}, r"'io'.*queue name is 1 to 100 printable"),
    "a queue name too long": ({"io": {"queues": ["x" * 101]}}, r"'io'.*queue name is 1 to 100 printable"),
    "a queue name with a line end": ({"io": {"queues": ["a\nb"]}}, r"'io'.*queue name is 1 to 100 printable"),
    "negative workers": ({"io": {"workers": -1}}, r"'io'.*'workers'.*from 0 to 1000, not -1"),
    "no process": ({"io": {"processes": 0}}, r"'io'.*'processes'.*from 1 to 256"),
    "half a thread": ({"io": {"threads": 0.5}}, r"'io'.*'threads'.*from 1 to 1024"),
    "threads that are true": ({"io": {"threads": True}}, r"'io'.*'threads'.*from 1 to 1024"),
    "threads that are text": ({"io": {"threads": "8"}}, r"'io'.*'threads'.*from 1 to 1024"),
    "far too many threads": ({"io": {"threads": 10**9}}, r"'io'.*'threads'.*from 1 to 1024"),
    "fewer workers at most than at first": (
        {"io": {"workers": 3, "max_workers": 2}},
        r"'max_workers'.*at least its",
    ),
    "a most of half a worker": ({"io": {"max_workers": 1.5}}, r"'max_workers'.*from 1 to 1000"),
    "an environment that is no dict": ({"io": {"environment": ["A=1"]}}, r"'io'.*'environment'.*must be a dict"),
    "a variable that is no name": ({"io": {"environment": {"A B": "1"}}}, r"'environment'.*named with.*'A B'"),
    "a variable that is a number": ({"io": {"environment": {"A": 4}}}, r"'environment'.*'A'.*a text such as '4'"),
    "a user that is a number": ({"io": {"user": 33}}, r"'io'.*'user'.*name of a user"),
    "a user with a colon": ({"io": {"user": "a:b"}}, r"'io'.*'user'.*name of a user"),
    "less memory than Django takes": ({"io": {"memory_limit_mb": 16}}, r"'memory_limit_mb'.*from 128 to"),
    "an executor for no job": ({"io": {"max_jobs": 0}}, r"'max_jobs'.*from 1 to"),
    "an executor too small to start": ({"io": {"max_rss_mb": 100}}, r"'max_rss_mb'.*from 128 to"),
    "a worker of half a megabyte": ({"io": {"max_worker_rss_mb": 0.5}}, r"'max_worker_rss_mb'.*whole number"),
    "memory that is text": ({"io": {"memory_limit_mb": "2G"}}, r"'memory_limit_mb'.*whole number"),
    "a trust that is a sentence": ({"io": {"trust": "not at all"}}, r"'io'.*'trust'.*must be a label"),
}


@pytest.mark.requirement("L23")
@pytest.mark.parametrize(("pools", "told"), POOLS.values(), ids=POOLS)
def test_a_pool_that_cannot_work_names_itself_and_the_fix(pools: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read({"POOLS": pools})


def test_a_queue_name_may_be_as_long_as_the_column() -> None:
    name = "ä" * MAX_QUEUE_LENGTH
    assert read({"POOLS": {"io": {"queues": [name]}}}).pools["io"].queues == (name,)


def test_each_setting_has_a_sentence_for_the_documentation() -> None:
    assert all(f.metadata.get("help") for f in fields(Config))
    assert all(f.metadata.get("help") for f in fields(Pool) if f.name != "name")


@pytest.mark.requirement("R8", "N16")
def test_options_of_queues_are_read() -> None:
    given = {
        "mail": {"concurrency": 3, "timeout_seconds": 2.5, "target_wait_seconds": 30},
        "ledger": {"sequential": True},
    }
    assert read({"QUEUES": given}).queues == {
        "mail": QueueOptions(concurrency=3, timeout_seconds=2.5, target_wait_seconds=30),
        "ledger": QueueOptions(sequential=True),
    }


@pytest.mark.requirement("R8", "N16")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "must be a dict"),
        ({"concurency": 3}, "unknown keys \\['concurency'\\]"),
        ({"concurrency": 0}, "whole number above 0"),
        ({"concurrency": 2.5}, "whole number above 0"),
        ({"timeout_seconds": "5"}, "number above 0"),
        ({"target_wait_seconds": 0}, "number above 0"),
        ({"timeout_seconds": True}, "number above 0"),
        ({"sequential": 1}, "True or False"),
        ({"sequential": True, "concurrency": 2}, "leave `concurrency` out"),
    ],
)
def test_an_option_of_a_queue_that_cannot_be_names_queue_and_fix(options: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        read({"QUEUES": {"mail": options}})
    assert "SHIFTBOSS[\"QUEUES\"]['mail']" in str(refused.value)


@pytest.mark.requirement("N7", "N6", "R3")
@pytest.mark.parametrize("key", ["QUEUE_AUTHORIZER", "WATCH_AUTHORIZER", "OBSERVERS"])
@pytest.mark.parametrize("value", [5, "", [5], [""]])
def test_what_is_no_dotted_path_names_its_key(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        read({key: value})
