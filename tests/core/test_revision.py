"""A task's configuration, written down and named by what it says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.revision import TaskConfig

pytestmark = pytest.mark.requirement("L15", "L20")

words = st.text(min_size=1, max_size=8)
configs = st.builds(
    TaskConfig,
    task=words,
    isolation=st.sampled_from(["thread", "async", "process"]),
    timeout_seconds=st.none() | st.floats(0.1, 1e6),
    backoff=st.none()
    | st.floats(0, 1e6)
    | st.lists(st.floats(0, 10), min_size=1).map(tuple)
    | st.just("function"),
    durable=st.none() | st.just("each"),
    resource=st.none() | words,
    retry_on=st.none() | st.lists(words).map(tuple),
    discard_on=st.lists(words).map(tuple),
    secrets=st.lists(words).map(tuple),
)


@given(configs)
def test_what_is_written_is_read(config: TaskConfig) -> None:
    assert TaskConfig.from_json(config.to_json()) == config


@given(configs, configs)
def test_two_configurations_have_one_revision_only_where_they_say_the_same(
    one: TaskConfig, other: TaskConfig
) -> None:
    assert (one.revision == other.revision) == (one == other)
    assert 0 <= one.revision < 2**63


def test_the_revision_of_a_configuration_is_the_same_in_every_process() -> None:
    assert TaskConfig(task="shop.tasks.pay", timeout_seconds=30.0).revision == 8005568710469354608


@pytest.mark.parametrize("added", [{"newer": 1}, {"newer": [1]}])
def test_what_a_newer_version_has_added_is_left_out(added: dict[str, Any]) -> None:
    import json

    text = json.dumps({"task": "shop.tasks.pay", **added})
    assert TaskConfig.from_json(text) == TaskConfig(task="shop.tasks.pay")
