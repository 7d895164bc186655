"""The wheel in a project that has never heard of it, brought in by the lines that the README shows."""

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from shiftboss.compat import TASKS_APP
from tests.programs.tree import ROOT
from tests.waiting import wait_for

SECTION = re.compile(r"^## In your own project$(.*?)^## ", re.M | re.S)
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```", re.M | re.S)
FILE = re.compile(r"^# (\S+\.py)\n", re.M)

ENQUEUE = """
import shiftboss
from django.db import transaction
from shop.tasks import send_receipt

class Undo(Exception):
    pass

try:
    with transaction.atomic():
        send_receipt.enqueue(1)
        raise Undo
except Undo:
    pass
with transaction.atomic():
    send_receipt.enqueue(2)
print(shiftboss.__file__)
"""


def shown() -> tuple[dict[str, str], list[str]]:
    """What the README tells a project to write into each of its files, and to run."""
    section = SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert section
    files: dict[str, str] = {}
    commands: list[str] = []
    for kind, text in FENCE.findall(section[1]):
        if kind == "sh":
            commands += text.splitlines()
        else:
            _, *parts = FILE.split(text)
            files |= dict(zip(parts[::2], parts[1::2], strict=True))
    return files, commands


class Project:
    """A new project with an app `shop`, in an environment of its own that has the wheel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site"
        self.python = folder / "environment" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.python.parents[1]], check=True)
        wheel = runpy.run_path(str(ROOT / ".ci" / "wheel.py"))["build"](folder / "dist")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python)]
        install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        subprocess.run(install, env=self.environment(), check=True)
        [packages] = self.python.parents[1].glob("lib/python*/site-packages")
        # What it depends on is lent by this environment; a checkout installed there is not followed.
        (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
        self.folder.mkdir()
        self.run("-m", "django", "startproject", "project", ".")
        self.run("manage.py", "startapp", "shop")

    def write(self, name: str, text: str) -> None:
        """Add to a file of the project; `settings.py` and `urls.py` are the project's own."""
        path = self.folder / (name if "/" in name else f"project/{name}")
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")

    def environment(self) -> dict[str, str]:
        """This process's environment without what leads to the checkout."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DJANGO", "SHIFTBOSS"))}
        return kept | {"SHIFTBOSS_RUN_FOLDER": str(self.folder / "run")}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a Python of its environment in its folder."""
        return subprocess.Popen(
            [self.python, *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> str:
        """Run it to its end; what it printed."""
        process = self.start(*words)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        return output


def database(url: str) -> str:
    """The lines of `settings.py` for a database; every project has such ones."""
    parts = urlsplit(url)
    given = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "PASSWORD": parts.password,
        "HOST": parse_qs(parts.query)["host"][0] if parts.query else parts.hostname,
        "PORT": parts.port,
    }
    return f"DATABASES = {{'default': {given!r}}}\nINSTALLED_APPS += {['shop', *TASKS_APP]!r}\n"


@pytest.mark.requirement("C7")
def test_the_readme_brings_a_project_in_with_ten_lines() -> None:
    files, commands = shown()
    lines = [line for name in ("settings.py", "urls.py") for line in files[name].splitlines() if line]
    assert len(lines) + len(commands) <= 10


@pytest.mark.requirement("C1", "C2", "C7", "C8")
def test_the_readmes_lines_and_the_wheel_make_jobs_run_in_an_empty_project(
    tmp_path: Path, empty_database: str
) -> None:
    files, commands = shown()
    project = Project(tmp_path)
    project.write("settings.py", database(empty_database))
    for name in ("settings.py", "urls.py", "shop/tasks.py"):
        project.write(name, files[name])
    assert "no issues" in project.run("manage.py", "check", "--fail-level", "WARNING")
    migrate, *programs = (command.removeprefix("python ").split() for command in commands)
    project.run(*migrate)
    code = project.run("manage.py", "shell", "--command", textwrap.dedent(ENQUEUE)).splitlines()[-1]
    assert Path(code).is_relative_to(tmp_path), "the project must not use the checkout"
    started = [project.start(*program) for program in programs]
    try:
        with psycopg.connect(empty_database, autocommit=True) as connection:

            def finished() -> list[tuple[object, ...]]:
                assert [program.poll() for program in started] == [None] * len(started)
                return connection.execute("select state, task, args -> 'args' from shiftboss_finished").fetchall()

            assert wait_for(finished, seconds=30) == [("completed", "shop.tasks.send_receipt", [2])]
            assert connection.execute("select count(*) from shiftboss_job").fetchone() == (0,)
            # The maintainer may be the last to be there: before that, a signal ends it as any program.
            there = "select from pg_stat_activity where application_name = 'shiftboss maintainer'"
            wait_for(lambda: connection.execute(there).fetchall(), seconds=30)
        for program in started:
            program.terminate()
        assert [program.wait(timeout=30) for program in started] == [0] * len(started)
    finally:
        for program in started:
            program.kill()
            program.communicate()
