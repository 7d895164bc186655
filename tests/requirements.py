"""A pytest plugin (`make requirements`): which requirements no test names.

`tests/requirements.txt` lists their ids; a test names what it would miss by `@pytest.mark.requirement("C2")`.
"""

from pathlib import Path

import pytest

LISTED = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split()


def named_by(items: list[pytest.Item]) -> dict[str, int]:
    """How many of these tests name each id."""
    counts: dict[str, int] = {}
    for item in items:
        for mark in item.iter_markers("requirement"):
            for name in mark.args:
                counts[name] = counts.get(name, 0) + 1
    return counts


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Print the ids without a test, and how many have one."""
    named = named_by(session.items)
    missing = [name for name in LISTED if name not in named]
    print(f"{len(LISTED) - len(missing)} of {len(LISTED)} requirements are named by a test. Without one:")
    print(" ".join(missing))
    # The tests themselves are of no interest here.
    session.items.clear()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """That no test ran is no error here."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
