"""A verb is written once: statements without I/O, and two short executors that run them.

A *verb* is a generator. It yields a `Call` (a statement with its parameters) and is sent the rows; or a `Copy`
(many rows for one table) and is sent nothing; or `Atomic(verb)` and is sent the result of that verb, run in a
transaction. What it returns is its answer. An error of the database is thrown into the verb at the `yield`, so
that a verb can answer it.

>>> def count() -> Verb[int]:
...     [row] = yield COUNT.call(queue="default")
...     return row.n
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import args_row

from shiftboss.queue.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

R = TypeVar("R")
Row = TypeVar("Row")

_SQL = files("shiftboss.queue.store").joinpath("sql")


@cache
def sql_text(name: str) -> str:
    """The text of `sql/NAME.sql`; each line `-- part: X`, in parts too, is replaced by `sql/parts/X.sql`."""
    lines = []
    for line in _SQL.joinpath(f"{name}.sql").read_text(encoding="utf-8").splitlines():
        head, found, part = line.partition("-- part: ")
        lines.append(sql_text(f"parts/{part.strip()}").rstrip() if found and not head.strip() else line)
    return "\n".join(lines)


def numbers(values: "Iterable[int]") -> str:
    """An array of whole numbers as PostgreSQL reads it. A list would be adapted number by number."""
    return "{" + ",".join(map(str, values)) + "}"


@dataclass(frozen=True, slots=True)
class Statement(Generic[Row]):
    """One SQL file and the type of its rows (called with the columns in order)."""

    name: str
    row: "Callable[..., Row]"

    @property
    def sql(self) -> str:
        """The statement's text, with named parameters in psycopg's style."""
        return sql_text(self.name)

    def call(self, **params: Any) -> "Call[Row]":
        """The statement with its parameters, ready to be yielded."""
        return Call(self, params)

    def copy(self, rows: "Iterable[Sequence[Any]]") -> "Copy":
        """A statement `copy … from stdin` with its rows, ready to be yielded."""
        return Copy(self, rows)


@dataclass(frozen=True, slots=True)
class Call(Generic[Row]):
    """A statement and its parameters."""

    statement: Statement[Row]
    params: dict[str, Any]

    def composed(self) -> str | sql.Composed:
        """The text to be sent. Parameters that are `Identifier`s take the places `{name}` in it."""
        names = {name: value for name, value in self.params.items() if isinstance(value, sql.Identifier)}
        text = self.statement.sql
        return sql.SQL(text).format(**names) if names else text


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows for a `copy … from stdin`, in the order of its columns."""

    statement: Statement[Any]
    rows: "Iterable[Sequence[Any]]"


@dataclass(frozen=True, slots=True)
class Atomic(Generic[R]):
    """A verb to be run inside one transaction (a savepoint where one is open already)."""

    verb: "Verb[R]"


Wish = Call[Any] | Copy | Atomic[Any]
Verb = Generator[Wish, Any, R]


def run(verb: Verb[R], *, using: str | None = None) -> R:
    """Drive a verb on Django's own connection, inside whatever transaction is open there.

    `using` is a database alias; the configured one by default. Errors of the database that the verb does not
    answer are raised as Django's (django.db.OperationalError and so on).
    """
    from django.db import DataError, connections, transaction

    from shiftboss import conf

    connection = connections[using or conf.get().database]
    wrapped: dict[psycopg.Error, Exception] = {}

    def answer(wish: Wish) -> Any:
        if isinstance(wish, Atomic):
            with transaction.atomic(using=connection.alias):
                return _drive(wish.verb, answer)
        try:
            with connection.cursor() as cursor:
                if isinstance(wish, Copy):
                    with connection.wrap_database_errors, cursor.cursor.copy(wish.statement.sql) as copy:
                        for row in wish.rows:
                            copy.write_row(row)
                    return None
                cursor.execute(wish.composed(), wish.params)
                rows = cursor.fetchall() if cursor.description else []
        except UnicodeEncodeError as error:
            refused = _not_encodable(error)
            wrapped[refused] = DataError(str(refused))
            raise refused from None
        except Exception as error:
            # Verbs know psycopg's errors, not Django's wrappers of them.
            if not isinstance(error.__cause__, psycopg.Error):
                raise
            wrapped[error.__cause__] = error
            raise error.__cause__ from None
        return [wish.statement.row(*row) for row in rows]

    try:
        return _drive(verb, answer)
    except psycopg.Error as error:
        raise wrapped.get(error, error) from error


def _drive(verb: Verb[R], answer: "Callable[[Wish], Any]") -> R:
    try:
        wish = next(verb)
        while True:
            try:
                reply = answer(wish)
            except psycopg.Error as error:
                wish = verb.throw(error)
            else:
                wish = verb.send(reply)
    except StopIteration as stop:
        result: R = stop.value
        return result


async def arun(verb: Verb[R], connection: psycopg.AsyncConnection[Any]) -> R:
    """Drive a verb on a psycopg async connection in autocommit mode.

    Raises StoreUnavailable where the connection is or gets broken.
    """
    try:
        wish = next(verb)
        while True:
            try:
                reply = await _answer(wish, connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if connection.closed or connection.broken:
                    raise StoreUnavailable(str(error).strip()) from error
                wish = verb.throw(error)
            except psycopg.Error as error:
                wish = verb.throw(error)
            else:
                wish = verb.send(reply)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        verb.close()


async def _answer(wish: Wish, connection: psycopg.AsyncConnection[Any]) -> Any:
    if isinstance(wish, Atomic):
        async with connection.transaction():
            return await arun(wish.verb, connection)
    try:
        if isinstance(wish, Copy):
            async with connection.cursor() as cursor, cursor.copy(wish.statement.sql) as copy:
                for row in wish.rows:
                    await copy.write_row(row)
            return None
        async with connection.cursor(row_factory=args_row(wish.statement.row)) as asked:
            await asked.execute(wish.composed(), wish.params)
            return await asked.fetchall() if asked.description else []
    except UnicodeEncodeError as error:
        raise _not_encodable(error) from None


def _not_encodable(error: UnicodeEncodeError) -> psycopg.DataError:
    # Like a text with a NUL character, which psycopg refuses in this way by itself.
    return psycopg.DataError(f"PostgreSQL text cannot hold what {error.encoding} cannot encode: {error.reason}")
