"""The gate before each program."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shiftboss.supervisor_conf.programs import python
from tests.programs.tree import ROOT, environment
from tests.waiting import wait_for


@contextmanager
def at_the_gate(home: Path, url: str, *options: str) -> "Iterator[subprocess.Popen[str]]":
    """A gate with a command behind it that prints `through`."""
    with (
        (home / "reasons").open("w") as reasons,
        subprocess.Popen(
            python("shiftboss.supervisor_conf.gate", *options, "--", "echo", "through"),
            env=environment(home, DATABASE_URL=url, DJANGO_SETTINGS_MODULE="shiftboss.site.settings"),
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=reasons,
            text=True,
        ) as gate,
    ):
        try:
            yield gate
        finally:
            gate.kill()


def migrate(home: Path, url: str) -> None:
    """Apply all migrations, as a deploy does."""
    subprocess.run(
        [sys.executable, "-P", "-m", "django", "migrate", "--verbosity", "0"],
        env=environment(home, DATABASE_URL=url, DJANGO_SETTINGS_MODULE="shiftboss.site.settings"),
        cwd=ROOT,
        check=True,
    )


@pytest.mark.requirement("C2")
def test_a_program_waits_for_the_migrations_and_says_so(empty_database: str, tmp_path: Path) -> None:
    with at_the_gate(tmp_path, empty_database) as gate:
        reasons = tmp_path / "reasons"
        wait_for(lambda: "lacks the migrations" in reasons.read_text(), seconds=20)
        assert gate.poll() is None
        migrate(tmp_path, empty_database)
        assert gate.communicate(timeout=20)[0] == "through\n"
        assert gate.returncode == 0


def test_a_program_waits_for_a_database_that_does_not_answer(tmp_path: Path) -> None:
    with at_the_gate(tmp_path, f"postgresql://u:secret@/d?host={tmp_path}"):
        reasons = tmp_path / "reasons"
        wait_for(lambda: "cannot be reached" in reasons.read_text(), seconds=20)
    assert "secret" not in reasons.read_text()


def test_a_gate_without_a_command_is_a_usage_error(tmp_path: Path) -> None:
    asked = subprocess.run(
        python("shiftboss.supervisor_conf.gate"), env=environment(tmp_path), capture_output=True, check=False
    )
    assert asked.returncode != 0
    assert b"usage:" in asked.stderr


def test_what_a_file_says_of_the_environment_is_in_force_at_the_gate(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(
        f"# for the workers\nDATABASE_URL='postgresql://u@/of_the_file?host={tmp_path}'\n"
    )
    with at_the_gate(tmp_path, "postgresql://u@/inherited", "--env-file", str(tmp_path / "env")):
        wait_for(lambda: "'of_the_file'" in (tmp_path / "reasons").read_text(), seconds=20)


def test_a_gate_without_its_file_stays_closed(tmp_path: Path) -> None:
    with at_the_gate(tmp_path, "postgresql://u@/d", "--env-file", str(tmp_path / "none")) as gate:
        assert gate.wait(timeout=20) == 1
        assert "none cannot be read: No such file" in (tmp_path / "reasons").read_text()
