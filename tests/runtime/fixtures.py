"""The fixture of all tests with real workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.programs import House


@pytest.fixture
def house(dsn: str, tmp_path: Path) -> Iterator[House]:
    """Programs on the test's database; none is left after the test."""
    house = House(tmp_path, dsn)
    yield house
    house.end()
    for log in sorted(tmp_path.glob("*.out")):  # shown where the test has failed
        print(f"--- {log.name}", *log.read_text().splitlines()[-40:], sep="\n")
