"""The record as pages read it: within bounded time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction

from shiftboss import conf

PATIENCE_SECONDS = 5.0
"""How long one statement of a page may take; a page that waits longer tells nobody anything."""


@contextmanager
def bounded() -> Iterator[None]:
    """Cut off each statement inside after `PATIENCE_SECONDS`. Raises psycopg.errors.QueryCanceled."""
    connection = connections[conf.get().database]
    with transaction.atomic(using=connection.alias):
        with connection.cursor() as cursor:
            limit = f"{PATIENCE_SECONDS * 1000:.0f}ms"
            # Compiling a statement over many partitions would take longer than running it.
            cursor.execute(
                "select set_config('statement_timeout', %s, true), set_config('jit', 'off', true)", [limit]
            )
        yield
