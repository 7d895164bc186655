"""`manage.py shiftboss_supervisor_conf`: what it writes, and what supervisord and systemd make of it."""

import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command

from shiftboss import conf
from shiftboss.supervisor_conf import env_file, incarnations, places, programs, render
from shiftboss.supervisor_conf.programs import Program, RenderError
from tests.programs.supervisords import START_SECONDS, Supervisord, supervisord
from tests.programs.test_render import installation, parsed, sections
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("C2")

ME = "root" if os.geteuid() == 0 else psutil.Process().username()
AWKWARD = {
    "PERCENT": "x1it3km%2BTVmkRsQ",
    "HUNDRED": "100%",
    "PASS": "pa%ss",
    "COMMA": "a,b",
    "QUOTE": 'a"b',
    "SEMICOLON": "a;b",
    "BACKSLASH": "end\\",
    "PATTERN": "%(ENV_PATH)s %(program_name)s",
    "DOLLAR": "$HOME `id`",
    "SPACES": " a  b ",
    "NOTHING": "",
    "HASH": "a#b",
}


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Gives the settings these pools, in a home that has a folder for logs."""
    (tmp_path / "log").mkdir(mode=0o700)

    def give(**given: Any) -> None:
        config = conf.read({"POOLS": given})
        monkeypatch.setattr(conf, "get", lambda: config)

    give(default={"workers": 2}, heavy={"queues": ["heavy"], "memory_limit_mb": 512, "trust": "internal"})
    return give


def conf_command(home: Path, *words: object) -> tuple[int, str]:
    """Run the command: its exit code, and its output."""
    output = StringIO()
    try:
        call_command("shiftboss_supervisor_conf", "--home", str(home), *map(str, words), stdout=output)
    except SystemExit as ended:
        return int(str(ended.code)), output.getvalue()
    return 0, output.getvalue()


def environment_of(process: int) -> dict[str, str]:
    """The environment of a process, once it is the program that it is to be."""
    words = wait_for(lambda: Path(f"/proc/{process}/environ").read_bytes(), seconds=20).split(b"\0")
    return dict(word.decode().split("=", 1) for word in words if word)


def idle(name: str, **more: Any) -> Program:
    """A program that does nothing for long."""
    return Program(name=name, command=["sleep", "600"], priority=1, stop_seconds=5, **more)


def test_what_is_written_is_what_supervisord_reads(pools: object, tmp_path: Path) -> None:
    code, text = conf_command(tmp_path)
    assert code == 0
    read = sections(parsed(tmp_path, text))
    assert set(read) == {"listener", "maintainer", "worker-default-1", "worker-default-2", "worker-heavy-1"}
    heavy: Any = read["worker-heavy-1"]
    assert (heavy.stopasgroup, heavy.killasgroup, heavy.stopsignal) == (False, True, 15)
    assert heavy.stopwaitsecs > conf.get().drain_seconds
    assert (heavy.environment["SHIFTBOSS_TRUST"], heavy.environment["SHIFTBOSS_HOME"]) == (
        "internal",
        str(tmp_path),
    )
    limited = f"{shutil.which('setpriv')} --pdeathsig TERM {shutil.which('prlimit')} --data={512 << 20} "
    assert f" worker-heavy-1 -- {limited}" in heavy.command
    assert f"{sys.executable} -P -m django shiftboss_worker --pool heavy" in heavy.command
    assert "; worker of the pool heavy; queues: heavy; 8 slots; trust: internal\n" in text


@pytest.mark.requirement("L31")
def test_workers_beyond_those_that_start_are_known_and_wait(pools: Callable[..., None], tmp_path: Path) -> None:
    pools(default={"workers": 1, "max_workers": 3})
    read: dict[str, Any] = sections(parsed(tmp_path, conf_command(tmp_path)[1]))
    assert [read[f"worker-default-{n}"].autostart for n in (1, 2, 3)] == [True, False, False]
    _, units = conf_command(tmp_path, "--format", "systemd", "--user", ME)
    assert "Wants=shiftboss-worker-default@1.service" in units
    assert "Wants=shiftboss-worker-default@2.service" not in units


def test_the_console_is_served_where_that_is_asked_for(pools: object, tmp_path: Path) -> None:
    _, text = conf_command(tmp_path, "--web", "127.0.0.1:8300")
    web: Any = sections(parsed(tmp_path, text))["web"]
    assert "--bind 127.0.0.1:8300" in web.command


def test_a_file_is_written_for_its_owner_alone_and_its_logs_have_a_place(pools: object, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert conf_command(home, "--output", tmp_path / "a.conf") == (0, f"written: {tmp_path / 'a.conf'}\n")
    assert stat.S_IMODE((tmp_path / "a.conf").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "log").stat().st_mode) == 0o700
    code, text = conf_command(home)
    assert (code, text) == (0, (tmp_path / "a.conf").read_text())


def team(folder: Path, included: str) -> tuple[Path, Path]:
    """The configuration of a supervisord that runs something else already, and includes this; its socket."""
    (folder / "conf.d").mkdir()
    (folder / "conf.d" / "shiftboss.conf").write_text(included)
    file, socket = folder / "supervisord.conf", folder / "team.sock"
    file.write_text(
        f"[unix_http_server]\nfile = {socket}\nchmod = 0700\n"
        f"[supervisord]\nlogfile = {folder / 'supervisord.log'}\npidfile = {folder / 'supervisord.pid'}\n"
        + (f"user = {ME}\n" if os.geteuid() == 0 else "")
        + "[rpcinterface:supervisor]\n"
        "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface\n"
        "[program:web]\ncommand = sleep 600\n"
        "[include]\nfiles = conf.d/*.conf\n"
    )
    return file, socket


def test_beside_other_programs_of_a_supervisord_that_is_there_already(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    given = replace(installation(home), settings="shiftboss.site.settings")
    other, python = _somebody_else()
    found = [
        idle("limited", environment=AWKWARD, memory_limit_mb=512),
        replace(idle("web", user=other), command=["sh", "-c", "exit 3"], start_seconds=0),
    ]
    incarnations.make_folders(home, found)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", python)
        text = render.include(given, found, prefix="shiftboss-", surroundings=given.surroundings())
    file, socket = team(home.parent, text)
    with supervisord(file, socket) as running:
        assert set(running.programs()) == {"web", "shiftboss-web", "shiftboss-limited"}
        launcher = psutil.Process(running.pid_of("shiftboss-limited"))
        [process] = wait_for(launcher.children, seconds=START_SECONDS)
        wait_for(lambda: process.name() == "sleep", seconds=START_SECONDS)
        given_to = environment_of(process.pid)
        assert {name: given_to[name] for name in AWKWARD} == AWKWARD
        assert given_to["DJANGO_SETTINGS_MODULE"] == "shiftboss.site.settings"
        assert process.cwd() == str(home)
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert re.search(r"Max data size +536870912 +536870912", limits)
        assert running.programs()["shiftboss-limited"]["logfile"] == str(home / "log" / "shiftboss-limited.log")
        notes = incarnations.folder(home, other)
        ended = wait_for(lambda: incarnations.noted(notes, ["shiftboss-web"]), seconds=START_SECONDS)
        assert ended[0].code in (3, None)
        assert ended[0].file.owner() == (other or ME)


def _somebody_else() -> tuple[str | None, str]:
    """A user whom supervisord can run programs as, if there is one, and a Python that they can run."""
    account = places.unprivileged()
    for executable in (sys.executable, "/usr/bin/python3"):
        if account and account.can("-x", Path(executable)) and account.can("-r", Path(places.__file__)):
            return pwd.getpwuid(account.uid).pw_name, executable
    return None, sys.executable


def test_what_supervisord_cannot_hold_is_refused_by_its_name_and_not_shown(tmp_path: Path) -> None:
    for text in ("both ' and \"", "at the end'", "two\nlines", "secret ;comment", "secret #comment"):
        program = idle("odd", environment={"TOKEN": text})
        with pytest.raises(RenderError, match=r"TOKEN.*--env-file") as refused:
            render.render(installation(tmp_path), [program])
        assert text not in str(refused.value)


def test_what_supervisord_would_replace_in_an_included_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match=r"odd has a %\(here\)s"):
        render.include(
            installation(tmp_path), [idle("odd", environment={"A": "%(here)s"})], prefix="", surroundings={}
        )


def test_a_memory_limit_is_felt_by_the_program_that_passes_it(tmp_path: Path) -> None:
    code = "try:\n x = bytearray(600 << 20)\nexcept MemoryError:\n raise SystemExit(7)"
    greedy = Program(
        name="greedy", command=[sys.executable, "-c", code], priority=1, stop_seconds=1, memory_limit_mb=256
    )
    assert subprocess.run(render.supervised(greedy, tmp_path), check=False).returncode == 7


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=x1it%2B", "x1it%2B"),
        ('A="a \\"b\\" \\$c \\n"', 'a "b" $c \\n'),
        ("A='it is \"so\" \\'", 'it is "so" \\'),
        ("export A=a b;c #d", "a b;c #d"),
        ("A=", ""),
        ("  # no\n; no\n\nA=1", "1"),
    ],
)
def test_a_file_of_the_environment_is_read_as_it_is_written(tmp_path: Path, line: str, value: str) -> None:
    (tmp_path / "env").write_text(f"{line}\n")
    assert env_file.read(tmp_path / "env") == {"A": value}


@pytest.mark.parametrize("line", ["A: secret", "secret", 'A="secret', "1A=secret"])
def test_a_line_that_cannot_be_meant_is_named_by_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "env").write_text(f"B=1\n{line}\n")
    with pytest.raises(env_file.EnvFileError, match="line 2") as refused:
        env_file.read(tmp_path / "env")
    assert "secret" not in str(refused.value)
    with pytest.raises(env_file.EnvFileError, match="cannot be read: No such file"):
        env_file.read(tmp_path / "none")


def test_check_shows_what_a_deploy_would_change(pools: Callable[..., None], tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    code, text = conf_command(tmp_path, "--check", "--output", file)
    assert (code, text.count("\n+[program:"), text.count("\n+[eventlistener:")) == (1, 4, 1)
    conf_command(tmp_path, "--output", file)
    assert conf_command(tmp_path, "--check", "--output", file) == (0, "")
    pools(default={"workers": 1})
    code, text = conf_command(tmp_path, "--check", "--output", file)
    assert code == 1
    assert f"--- {file}\n+++ from the settings\n" in text
    assert "\n-[program:worker-default-2]\n" in text
    assert not file.read_text().count("[program:worker-default-3]")


def test_check_sees_that_a_written_configuration_is_not_yet_what_runs(
    pools: Callable[..., None], tmp_path: Path
) -> None:
    given = installation(tmp_path)
    file = tmp_path / "supervisord.conf"
    file.write_text(render.render(given, [idle("maintainer"), idle("worker-default-1")]))
    with supervisord(file, render.socket_path(tmp_path)) as running:
        assert isinstance(running, Supervisord)
        pools(default={"workers": 2})
        conf_command(tmp_path, "--output", file)
        code, text = conf_command(tmp_path, "--check")
    assert code == 1
    assert text.endswith(" maintainer\n worker-default-1\n+worker-default-2\n")
    assert conf_command(tmp_path, "--check") == (0, "")


@pytest.mark.requirement("L23")
def test_a_pool_runs_as_its_user_with_folders_of_its_own(pools: Callable[..., None], tmp_path: Path) -> None:
    pools(default={"user": ME, "environment": {"HOME": "/srv"}})
    _, text = conf_command(tmp_path)
    [pid] = [one for one in parsed(tmp_path, text).process_group_configs if one.name == "worker-default-1"]
    [worker] = pid.process_configs
    assert worker.uid == os.geteuid()
    assert worker.environment["SHIFTBOSS_RUN_FOLDER"] == ""
    assert worker.environment["HOME"] == "/srv"


def test_up_refuses_users_that_it_cannot_run_a_pool_as(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = conf.read({"POOLS": {"default": {"user": "nobody"}}})
    monkeypatch.setattr(programs.os, "geteuid", lambda: 1)
    with pytest.raises(RenderError, match=r"'default'\]\[\"user\"\] is 'nobody': start as root"):
        programs.refuse_foreign_users(config, installation(tmp_path))
    monkeypatch.setattr(programs.os, "geteuid", lambda: 0)
    with pytest.raises(RenderError, match="embedded database: name another one in DATABASE_URL"):
        programs.refuse_foreign_users(config, installation(tmp_path, embedded=True))
    programs.refuse_foreign_users(config, installation(tmp_path))
    nobody = conf.read({"POOLS": {"default": {"user": "no-such-user"}}})
    with pytest.raises(RenderError, match="no user 'no-such-user' on this host"):
        programs.refuse_foreign_users(nobody, installation(tmp_path))


@pytest.mark.requirement("L28")
def test_beside_other_programs_the_agent_runs_where_it_is_told_the_socket(pools: object, tmp_path: Path) -> None:
    _, without = conf_command(tmp_path, "--include")
    assert "listener" not in without
    words = ("--include", "--socket", "/run/supervisor.sock", "--prefix", "sb-")
    _, text = conf_command(tmp_path, *words)
    assert "[eventlistener:sb-listener]\n" in text
    assert "shiftboss_listener --events --socket /run/supervisor.sock --prefix=sb-\n" in text


REFUSED: dict[str, tuple[list[str], str]] = {
    "sections that systemd would include": (["--include", "--format", "systemd"], "--include is for supervisord"),
    "a prefix of its own supervisord": (["--prefix", "x-"], "--prefix is for"),
    "a socket of its own supervisord": (["--socket", "/x"], "--socket is for --include"),
    "a user of supervisord": (["--user", ME], "give a pool its"),
    "a user that nobody knows": (["--format", "systemd", "--user", "no-such-user"], "no user 'no-such-user'"),
    "a comparison with nothing": (["--include", "--check"], "--check needs --output"),
    "an address without a port": (["--web", "localhost"], "is no address"),
    "a prefix with a space": (["--include", "--prefix", "a b"], "cannot begin a name"),
    "a folder that is not there": (["--output", "/no/such/folder/a.conf"], "cannot be written: No such file"),
}


@pytest.mark.parametrize(("words", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_what_would_do(
    pools: object, tmp_path: Path, words: list[str], told: str
) -> None:
    with pytest.raises(CommandError, match=told):
        conf_command(tmp_path, *words)


def test_one_who_names_no_user_is_not_made_root(
    pools: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(CommandError, match="--user root, if you mean that"):
        conf_command(tmp_path, "--format", "systemd")


def test_units_are_a_template_for_each_pool_and_one_target(pools: Callable[..., None], tmp_path: Path) -> None:
    pools(default={"workers": 2}, heavy={"memory_limit_mb": 512, "environment": AWKWARD | {"LINES": "a\nb"}})
    conf_command(tmp_path, "--format", "systemd", "--user", ME, "--output", tmp_path)
    assert sorted(file.name for file in tmp_path.glob("shiftboss*")) == [
        "shiftboss-maintainer.service",
        "shiftboss-worker-default@.service",
        "shiftboss-worker-heavy@.service",
        "shiftboss.target",
    ]
    target = (tmp_path / "shiftboss.target").read_text()
    assert "Wants=shiftboss-worker-default@1.service\nWants=shiftboss-worker-default@2.service\n" in target
    heavy = (tmp_path / "shiftboss-worker-heavy@.service").read_text().splitlines()
    for line in ("KillMode=mixed", "TimeoutStopSec=65", "Restart=always", "OOMPolicy=continue", "MemoryMax=512M"):
        assert line in heavy
    assert r'Environment="LINES=a\nb"' in heavy
    assert r'Environment="QUOTE=a\"b"' in heavy
    assert 'Environment="HUNDRED=100%%"' in heavy
    assert stat.S_IMODE((tmp_path / "shiftboss.target").stat().st_mode) == 0o644
    assert conf_command(tmp_path, "--format", "systemd", "--user", ME, "--output", tmp_path, "--check") == (0, "")


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze comes with systemd, which is not installed here",
)
def test_systemd_itself_finds_nothing_wrong_with_the_units(pools: Callable[..., None], tmp_path: Path) -> None:
    pools(default={"workers": 2, "memory_limit_mb": 512, "environment": AWKWARD | {"LINES": "a\nb"}})
    words = ["--format", "systemd", "--user", ME, "--env-file", tmp_path / "env", "--output", tmp_path]
    conf_command(tmp_path, *words, "--web", "127.0.0.1:8300")
    names = ("shiftboss.target", "shiftboss-worker-default@1.service", "shiftboss-web.service")
    asked = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / name) for name in names)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (asked.returncode, [line for line in asked.stderr.splitlines() if "shiftboss" in line]) == (0, [])
