"""A real worker on the database of a test."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.contrib.auth.models import Group

from shiftboss import InTransaction
from shiftboss.testing import programs, running_worker
from tests.processes import runs
from tests.testing.tasks import make_group

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "testing.md"

pytestmark = pytest.mark.requirement("P10")


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Settings that a worker's processes load too."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.runtime.settings")
    monkeypatch.setenv("TEST_APPS", "tests.testing")


@pytest.fixture
def family(project: None) -> Any:
    """A worker's processes, told to this list; none of them is left."""
    found: list[psutil.Process] = []
    yield found
    assert found
    assert [one for one in found if runs(one)] == []


@pytest.mark.django_db(transaction=True)
def test_a_group_is_made_by_a_worker(family: list[psutil.Process]) -> None:
    result = make_group.enqueue("editors")
    with running_worker() as worker:
        result.wait_end(seconds=60)
        keeper = psutil.Process(worker.pid)
        family += [keeper, *keeper.children(recursive=True)]
    assert Group.objects.get(name="editors").pk == result.return_value
    assert worker.stop() == 0


def test_the_documentation_shows_a_test_that_passes() -> None:
    """This one, without what it looks at of the processes."""
    shown = inspect.getsource(test_a_group_is_made_by_a_worker)
    lines = [
        line for line in shown.splitlines() if not any(word in line for word in ("family", "keeper", "stop()"))
    ]
    text = DOCUMENT.read_text(encoding="utf-8")
    assert "\n".join(lines[2:]) in text
    assert lines[0] in text


@pytest.mark.django_db
def test_it_is_refused_where_a_worker_could_see_nothing() -> None:
    with pytest.raises(InTransaction, match="transaction=True"), running_worker():
        pass


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(programs.keeper_config("default"), client="shiftboss.nowhere:connect")
    monkeypatch.setattr(programs, "keeper_config", lambda pool: config)
    with pytest.raises(RuntimeError, match=r"shiftboss\.nowhere"), running_worker():
        pass
