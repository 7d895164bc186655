"""Putting files on the list, and their jobs in the queue, in one transaction."""

from collections.abc import Iterable
from pathlib import Path

from django.db import connection, transaction

from catalogue.folders import Found
from catalogue.tasks import catalogue_file

# Small files go first: the catalogue shows something soon, and what fails there is tried again soon.
SMALL_BYTES = 4096
SMALL_PRIORITY = 10

# One statement decides which files are new or changed, so that scans side by side enqueue each once.
LIST_NEW_OR_CHANGED = """
insert into catalogue_file as listed (folder, path, package, size, mtime_ns)
select %s, path, package, size, mtime_ns
from unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) as found (path, package, size, mtime_ns)
on conflict (folder, path) do update set size = excluded.size, mtime_ns = excluded.mtime_ns
where (listed.size, listed.mtime_ns) is distinct from (excluded.size, excluded.mtime_ns)
returning path
"""


def enqueue_new(folder: Path, found: Iterable[Found]) -> int:
    """Enqueue a job for each file that is not listed with this size and time; how many there were.

    Listing and enqueueing are one transaction: a file is listed if and only if its job is stored.
    """
    files = {file.path: file for file in found}
    rows = [(file.path, file.package, file.size, file.mtime_ns) for file in files.values()]
    with transaction.atomic(), connection.cursor() as cursor:
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
        cursor.execute(LIST_NEW_OR_CHANGED, [str(folder), *columns])
        paths = sorted(path for (path,) in cursor.fetchall())
        for path in paths:
            priority = SMALL_PRIORITY if files[path].size <= SMALL_BYTES else 0
            catalogue_file.using(priority=priority).enqueue(str(folder), path)
    return len(paths)
