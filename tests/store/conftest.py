"""The record as tests of the store find it: empty, committed, and reached in two ways."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shiftboss.queue.store.statement import Verb, run
from tests.store import making
from tests.store.sessions import Ear, Session

Perform = Callable[[Verb[Any]], Any]
HERE = Path(__file__).parent

# With an app that has no tables, Django flushes nothing after a test: a flush of all partitions takes ten times
# as long as most of these tests, and `record` empties the five tables itself.
COMMITTED = pytest.mark.django_db(transaction=True, available_apps=["django.contrib.postgres"])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder commit, for other connections to see."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(COMMITTED)


@pytest.fixture(autouse=True)
def record(transactional_db: None) -> Iterator[None]:
    """The record, emptied after the test."""
    yield
    making.empty()


@pytest.fixture(scope="session")
def keepers_connection(django_db_setup: None, django_db_blocker: Any) -> Iterator[Session]:
    """One connection as keepers have, for all tests that leave it as it was."""
    with django_db_blocker.unblock():
        session = Session(making.address())
    yield session
    session.close()


@pytest.fixture(params=["django", "keeper"])
def perform(request: pytest.FixtureRequest) -> Perform:
    """Runs a verb: on Django's connection, and on a keeper's."""
    if request.param == "django":
        return run
    session: Session = request.getfixturevalue("keepers_connection")
    return session.run


@pytest.fixture
def connect(record: None) -> Iterator[Callable[[], Session]]:
    """Makes connections of the test's own."""
    made: list[Session] = []

    def connect() -> Session:
        made.append(Session(making.address()))
        return made[-1]

    yield connect
    for session in made:
        session.close()


@pytest.fixture
def ear(record: None) -> Iterator[Ear]:
    """Somebody who listens for notifications."""
    ear = Ear(making.address())
    yield ear
    ear.close()


@pytest.fixture
def listen(record: None) -> Iterator[Callable[[str], Ear]]:
    """Makes somebody who listens on a channel."""
    made: list[Ear] = []

    def listen(channel: str) -> Ear:
        made.append(Ear(making.address(), channel))
        return made[-1]

    yield listen
    for ear in made:
        ear.close()


@pytest.fixture
def worker() -> int:
    """A worker of the queue `default`."""
    return making.a_worker()


@pytest.fixture
def other() -> int:
    """Another worker of the queue `default`."""
    return making.a_worker()
