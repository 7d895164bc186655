"""Homes that the unprivileged server can reach, and one tree for the tests that only look."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.programs.shell import Shell
from tests.programs.tree import Tree


@pytest.fixture
def home() -> Iterator[Path]:
    """A home, not made yet, in a temporary folder that everybody may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="shiftboss-"))
    folder.chmod(0o755)
    yield folder / "home"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sh(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs commands in this process, with a home of their own."""
    monkeypatch.setenv("SHIFTBOSS_HOME", str(home))
    return Shell(capsys, monkeypatch)


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., Tree]]:
    """Starts `shiftboss up` in the home, and leaves nothing of it."""
    trees: list[Tree] = []

    def starter(*arguments: str) -> Tree:
        trees.append(Tree(home, *arguments))
        return trees[-1]

    yield starter
    for tree in trees:
        tree.end()


@pytest.fixture
def empty_database() -> Iterator[str]:
    """The address of a database without tables."""
    server = urlsplit(os.environ["DATABASE_URL"])
    with psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute("create database shiftboss_empty")
        yield server._replace(path="/shiftboss_empty").geturl()
        connection.execute("drop database shiftboss_empty with (force)")


@pytest.fixture(scope="module")
def running() -> Iterator[Tree]:
    """One tree for the tests of a module that change nothing; it is stopped as Ctrl-C does."""
    folder = Path(tempfile.mkdtemp(prefix="shiftboss-"))
    folder.chmod(0o755)
    tree = Tree(folder / "home", "--first", "check")
    try:
        yield tree.ready()
    finally:
        tree.end()
        shutil.rmtree(folder, ignore_errors=True)
