"""Tasks of a Django project, for a worker within its program."""

from asgiref.sync import sync_to_async
from django.db import connection

from shiftboss import task


@task
def ask_the_database(a: int) -> int:
    """Use a connection of the thread."""
    with connection.cursor() as cursor:
        cursor.execute("select %s + 1", [a])
        return int(cursor.fetchone()[0])


@task
async def ask_in_a_coroutine(a: int) -> int:
    """Use a connection of the lane's thread."""
    return await sync_to_async(ask_the_database.func)(a)
