"""The record as tests of acts find it."""

from collections.abc import Iterator

import pytest

from tests.store import making


@pytest.fixture
def record(transactional_db: None) -> Iterator[None]:
    """The record for tests that commit, emptied after the test. What the audit keeps stays: it refuses to go."""
    yield
    making.empty()


@pytest.fixture
def worker(db: None) -> int:
    """A worker of the queue `default`."""
    return making.a_worker()
