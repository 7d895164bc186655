"""The jobs of the catalogue. Each may run twice: it writes the same rows again."""

import hashlib
from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from catalogue.analysis import Counts, count
from catalogue.models import Overview, Package, SourceFile
from shiftboss import task

NO_COUNTS = {field.name: None for field in fields(Counts)}
SUMS = {
    "files": Count("id"),
    "hashed": Count("sha256"),
    "parsed": Count("lines"),
    **{name: Coalesce(Sum(name), 0) for name in ("bytes", *NO_COUNTS)},
}


@task(max_attempts=3, backoff=[1, 2])
def catalogue_file(folder: str, path: str) -> dict[str, Any]:
    """Hash a file, then decode, tokenise and parse it, and write down what it holds.

    The hash is stored first and stays when the file turns out to be broken; the error then ends the job.
    """
    source = Path(folder, path).read_bytes()
    digest = hashlib.sha256(source).hexdigest()
    _write(folder, path, sha256=digest, bytes=len(source), **NO_COUNTS)
    counts = asdict(count(source))
    _write(folder, path, **counts)
    return {"sha256": digest, **counts}


def _write(folder: str, path: str, **columns: Any) -> None:
    SourceFile.objects.update_or_create(
        folder=folder,
        path=path,
        defaults=columns,
        create_defaults={**columns, "package": Path(path).parent.as_posix()},
    )


@task(priority=-10)
def sum_up_package(folder: str, package: str) -> dict[str, int]:
    """Add up the files of one package."""
    sums = SourceFile.objects.filter(folder=folder, package=package).aggregate(**SUMS)
    Package.objects.update_or_create(folder=folder, package=package, defaults=sums)
    return sums


@task(priority=-20)
def rebuild_overview(turn: int) -> dict[str, int]:
    """Add up all files, have changed packages summed up, and enqueue the next turn.

    One transaction: the turn is taken only by the job whose number it is, and that job alone enqueues
    the next. So however often a job is delivered, there is one chain.
    """
    wait = timedelta(seconds=settings.CATALOGUE_OVERVIEW_SECONDS)
    with transaction.atomic():
        now = timezone.now()
        sums = SourceFile.objects.aggregate(**SUMS)
        mine = Overview.objects.filter(id=1, turn=turn)
        if not mine.update(turn=turn + 1, rebuilt_at=now, next_at=now + wait, **sums):
            return {}
        for folder, package in changed_packages():
            sum_up_package.enqueue(folder, package)
        rebuild_overview.using(run_after=now + wait).enqueue(turn + 1)
    return sums


def changed_packages() -> list[tuple[str, str]]:
    """The packages whose files no longer add up to what was written down."""
    written = set(_sums_by_package(Package.objects.all(), {}))
    added_up = _sums_by_package(SourceFile.objects.values("folder", "package"), SUMS)
    return [(folder, package) for folder, package, *sums in added_up if (folder, package, *sums) not in written]


def _sums_by_package(rows: QuerySet[Any], sums: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(rows.annotate(**sums).values_list("folder", "package", *SUMS))


def keep_overview_going() -> bool:
    """Start the chain of overviews where there is none, or where its next turn is long overdue."""
    with transaction.atomic():
        Overview.objects.get_or_create(id=1)
        overview = Overview.objects.select_for_update().get(id=1)
        now = timezone.now()
        overdue = now - timedelta(seconds=3 * settings.CATALOGUE_OVERVIEW_SECONDS)
        if overview.next_at and overview.next_at > overdue:
            return False
        # The old chain's turn is passed over, so that it ends should it ever wake up.
        overview.turn += 1
        overview.next_at = now
        overview.save(update_fields=["turn", "next_at"])
        rebuild_overview.enqueue(overview.turn)
    return True
