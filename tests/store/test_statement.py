"""Verbs are generators; two executors drive them."""

from typing import Any

import psycopg
import pytest
from django.db import DataError, transaction
from psycopg import errors as pg

from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.store.enqueue import enqueue
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb, run, sql_text
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, execute, new_job, scalar
from tests.store.sessions import Session

pytestmark = pytest.mark.requirement("N10", "L5")

TODAY = Statement("today", lambda day: day)
BAD = new_job(args="{")


def count() -> int:
    """Jobs in the record."""
    found: int = scalar("select count(*) from shiftboss_job")
    return found


def test_a_verb_is_sent_the_rows_that_it_asked_for(perform: Perform) -> None:
    def verb() -> Verb[Any]:
        [day] = yield TODAY.call()
        return day

    assert perform(verb()) == scalar("select (clock_timestamp() at time zone 'UTC')::date")


def test_an_error_of_the_database_is_thrown_into_the_verb_as_psycopgs(perform: Perform) -> None:
    def verb() -> Verb[str]:
        try:
            yield from enqueue(BAD, authority=SYSTEM)
        except pg.InvalidTextRepresentation:
            return "answered"
        return "not raised"

    assert perform(verb()) == "answered"


def test_after_an_error_that_it_answered_a_verb_goes_on(perform: Perform) -> None:
    def verb() -> Verb[int]:
        try:
            yield from enqueue(BAD, authority=SYSTEM)
        except psycopg.DataError:
            pass
        return (yield from enqueue(new_job(), authority=SYSTEM)).id

    assert perform(verb()) == scalar("select id from shiftboss_job")


def test_what_is_atomic_is_written_whole_or_not_at_all(perform: Perform) -> None:
    def both(second: Any) -> Verb[None]:
        yield from enqueue(new_job(), authority=SYSTEM)
        yield from enqueue(second, authority=SYSTEM)

    def verb(second: Any) -> Verb[str]:
        try:
            yield Atomic(both(second))
        except psycopg.DataError:
            return "rolled back"
        return "committed"

    assert perform(verb(BAD)) == "rolled back"
    assert count() == 0
    assert perform(verb(new_job())) == "committed"
    assert count() == 2


def test_an_error_of_the_verb_itself_rolls_back_what_is_atomic(perform: Perform) -> None:
    def inner() -> Verb[None]:
        yield from enqueue(new_job(), authority=SYSTEM)
        raise ZeroDivisionError

    def verb() -> Verb[None]:
        yield Atomic(inner())

    with pytest.raises(ZeroDivisionError):
        perform(verb())
    assert count() == 0


def test_on_djangos_connection_errors_are_djangos() -> None:
    with pytest.raises(DataError) as raised:
        run(enqueue(BAD, authority=SYSTEM))
    assert isinstance(raised.value.__cause__, psycopg.DataError)


def test_on_djangos_connection_a_verb_belongs_to_the_open_transaction() -> None:
    def verb() -> Verb[None]:
        yield Atomic(enqueue(new_job(), authority=SYSTEM))

    with transaction.atomic():
        run(verb())
        assert count() == 1
        transaction.set_rollback(True)
    assert count() == 0


def test_a_broken_connection_is_an_unavailable_store(connect: Any) -> None:
    session: Session = connect()
    execute("select pg_terminate_backend(%s)", session.pid)
    with pytest.raises(StoreUnavailable):
        session.run(enqueue(new_job(), authority=SYSTEM))
    assert session.run(enqueue(new_job(), authority=SYSTEM)).id == scalar("select id from shiftboss_job")


def test_a_statement_is_its_file_with_its_parts() -> None:
    text = sql_text("claim")
    assert "-- part:" not in text
    assert "update shiftboss_job j" in text
    assert Call(TODAY, {}) == TODAY.call()
