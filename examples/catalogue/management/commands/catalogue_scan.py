"""`catalogue_scan`: walk folders and enqueue a job for each new or changed source file."""

from argparse import ArgumentParser
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from catalogue.folders import source_files
from catalogue.scan import enqueue_new
from catalogue.tasks import keep_overview_going

BATCH = 500


class Command(BaseCommand):
    """Walk, list, enqueue; safe to run again and beside itself."""

    help = "Enqueue a job for each source file that is new or has changed. Safe to run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`--folder PATH`, as often as needed."""
        parser.add_argument(
            "--folder",
            action="append",
            help="folder to walk; may be given again (default: CATALOGUE_FOLDERS of the settings)",
        )

    def handle(self, *, folder: list[str] | None, **_: Any) -> None:
        """Scan each folder and keep the overview going. Exit code 1 where a folder cannot be read."""
        seen = sum(self._scan(_readable(given)) for given in folder or settings.CATALOGUE_FOLDERS)
        if not folder and seen < settings.CATALOGUE_ENOUGH_FILES:
            for given in settings.CATALOGUE_MORE_FOLDERS:
                self._scan(_readable(given))
        if keep_overview_going():
            self.stdout.write("overview: started")

    def _scan(self, folder: Path) -> int:
        seen = enqueued = 0
        files = source_files(folder)
        while batch := list(islice(files, BATCH)):
            seen += len(batch)
            enqueued += enqueue_new(folder, batch)
            self.stdout.write(f"{folder}: {seen} files seen, {enqueued} enqueued")
            self.stdout.flush()
        if not seen:
            self.stdout.write(f"{folder}: no source files")
        return seen


def _readable(given: str) -> Path:
    folder = Path(given).resolve()
    if not folder.is_dir():
        raise CommandError(f"{given} is not a folder; give an existing one with --folder")
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise CommandError(f"{given!r} is not UTF-8, which PostgreSQL cannot hold; rename the folder") from None
    return folder
