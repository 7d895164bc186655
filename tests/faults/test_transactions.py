"""Effects in the user's table and completions in the record are as many as jobs, whoever is killed, whenever."""

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.faults.storm import Blow, Storm
from tests.runtime.programs import House


@pytest.fixture(autouse=True)
def ledger(dsn: str) -> Iterator[None]:
    """The project's own table is gone after the test."""
    yield
    with connection.cursor() as cursor:
        cursor.execute("drop table if exists ledger")


@pytest.mark.requirement("B12", "L30")
def test_effects_and_completions_are_as_many_as_jobs_whoever_is_killed(house: House) -> None:
    blows = [Blow("backend", "open")] * 10 + [Blow("executor", "open"), Blow("executor", "committed")] * 2
    blows += [Blow("keeper", "open"), Blow("keeper", "committed")]
    storm = Storm(house, jobs=500, blows=blows, processes=1, threads=8)
    storm.run(seconds=240)
    account = storm.account()
    assert account.pop("cut_short") >= 10
    assert account == {"effects": 500, "numbers": 500, "completions": 500, "agreeing": 500, "live": 0}
    assert sum(storm.struck.values()) == len(blows) - storm.missed >= 10
