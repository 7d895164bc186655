"""The example as a user runs it: commands, real workers, a database of its own, real source files."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

import catalogue
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
SPECIMENS = Path(catalogue.__file__).parent / "specimens"

pytestmark = pytest.mark.requirement("C2", "C7", "C8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The catalogue's project on a database of its own, and a folder of sources for it."""

    url: str
    sources: Path

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a management command from outside of the checkout."""
        environment = os.environ | {
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "catalogue.settings",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")]),
            "SHIFTBOSS_SECRET_KEY": "only for tests",
        }
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "django", *words],
            env=environment,
            cwd=self.sources.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def manage(self, *words: str, code: int = 0) -> str:
        """Run a management command to its end; what it printed."""
        output, _ = (command := self.start(*words)).communicate(timeout=60)
        assert command.returncode == code, output
        return output

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(query).fetchall()

    @contextmanager
    def running(self, *commands: tuple[str, ...]) -> Iterator[None]:
        """Keep commands running for the length of the block; then SIGTERM has to end each with 0."""
        started = [self.start(*words) for words in commands]
        try:
            yield
        finally:
            for command in started:
                command.send_signal(signal.SIGTERM)
            ends = {" ".join(command.args[4:]): self._end_of(command) for command in started}
        assert {name: code for name, (code, _) in ends.items() if code} == {}, ends

    @staticmethod
    def _end_of(command: "subprocess.Popen[str]") -> tuple[int, str]:
        try:
            output, _ = command.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            command.kill()
            output, _ = command.communicate()
        return command.returncode, output[-3000:]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A migrated project beside the specimens and a copy of two packages of the standard library."""
    sources = tmp_path / "sources"
    shutil.copytree(SPECIMENS, sources / "broken")
    for package in ("json", "email"):
        found = Path(__import__(package).__file__).parent
        shutil.copytree(found, sources / package, ignore=shutil.ignore_patterns("__pycache__"))
    server = urlsplit(os.environ["DATABASE_URL"])
    name = f"catalogue_{uuid4().hex[:12]}"
    with psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True) as admin:
        admin.execute(f"create database {name}")
        try:
            made = Project(url=server._replace(path=f"/{name}").geturl(), sources=sources)
            made.manage("migrate", "--verbosity=0")
            yield made
        finally:
            admin.execute(f"drop database {name} with (force)")


def sha256_of(folder: Path) -> dict[str, str]:
    """Path and SHA-256 of each source file below a folder, without the catalogue's code."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*.py")
    }


WORKER = ("shiftboss_worker", "--pool", "default")
WORK_LEFT = "select 1 from shiftboss_job where state <> 'quarantined' and task not like '%rebuild_overview'"


def test_real_files_are_catalogued_and_broken_ones_end_in_the_quarantine(project):
    files = sha256_of(project.sources)
    printed = project.manage("catalogue_scan", "--folder", str(project.sources))
    assert f"{len(files)} files seen, {len(files)} enqueued" in printed
    with project.running(WORKER, ("shiftboss_maintainer",)):
        overview = "select hashed, parsed from catalogue_overview where rebuilt_at is not null"
        wait_for(lambda: project.rows(overview) and not project.rows(WORK_LEFT), seconds=60)

    assert dict(project.rows("select path, sha256 from catalogue_file")) == files
    broken = {path for path in files if path.startswith("broken/")}
    assert {path for (path,) in project.rows("select path from catalogue_file where lines is null")} == broken
    quarantined = project.rows(
        "select args, quarantine_reason, failures, error_type from shiftboss_job where state = 'quarantined'"
    )
    assert {args["args"][1] for args, *_ in quarantined} == broken
    assert {(reason, failures) for _, reason, failures, _ in quarantined} == {("failures_exhausted", 3)}
    assert len({error for *_, error in quarantined}) > 3
    [(attempts, tracebacks)] = project.rows(
        "select count(*), count(*) filter (where traceback like '%analysis.py%') from shiftboss_attempt "
        "where outcome = 'failed'"
    )
    assert (attempts, tracebacks) == (3 * len(broken), 3 * len(broken))
    packages = project.rows("select package, files, parsed from catalogue_package order by package")
    assert ("broken", len(broken), 0) in packages
    assert sum(files for _, files, _ in packages) == len(files)


def test_a_second_scan_enqueues_only_what_has_changed(project):
    folder = str(project.sources)
    project.manage("catalogue_scan", "--folder", folder)
    jobs = "select count(*) from shiftboss_job"
    before = project.rows(jobs)
    assert ", 0 enqueued" in project.manage("catalogue_scan", "--folder", folder)
    assert project.rows(jobs) == before
    (project.sources / "json" / "new.py").write_text("x = 1\n")
    (project.sources / "json" / "scanner.py").write_text("y = 2\n")
    assert ", 2 enqueued" in project.manage("catalogue_scan", "--folder", folder)


def test_small_files_go_first(project):
    project.manage("catalogue_scan", "--folder", str(project.sources))
    priorities = dict(project.rows("select args -> 'args' ->> 1, priority from shiftboss_job"))
    assert priorities["json/__init__.py"] < priorities["broken/nul_bytes.py"]


def test_scans_side_by_side_enqueue_each_file_once(project):
    scans = [project.start("catalogue_scan", "--folder", str(project.sources)) for _ in range(3)]
    outputs = [scan.communicate(timeout=60)[0] for scan in scans]
    assert [scan.returncode for scan in scans] == [0, 0, 0], outputs
    tasks = project.rows("select split_part(task, '.', -1), count(*) from shiftboss_job group by 1 order by 1")
    assert tasks == [("catalogue_file", len(sha256_of(project.sources))), ("rebuild_overview", 1)]


def test_an_overview_that_is_delivered_twice_goes_on_once(project):
    project.manage("catalogue_scan", "--folder", str(project.sources / "json"))
    turn = "from catalogue.tasks import rebuild_overview as task; print(bool(task.call(1)))"
    assert [project.manage("shell", "--no-imports", "-c", turn).split()[-1] for _ in range(2)] == ["True", "False"]
    turns = project.rows("select args from shiftboss_job where task like '%rebuild_overview' order by id")
    assert [args["args"] for (args,) in turns] == [[1], [2]]


def test_a_folder_that_does_not_exist_is_refused(project):
    printed = project.manage("catalogue_scan", "--folder", str(project.sources / "nowhere"), code=1)
    assert "is not a folder; give an existing one with --folder" in printed
    assert json.dumps(project.rows("select count(*) from shiftboss_job")) == "[[0]]"


def test_the_migrations_are_those_of_the_models(project):
    assert "No changes detected" in project.manage("makemigrations", "catalogue", "--check", "--dry-run")
