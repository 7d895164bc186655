"""A supervisord that runs is brought to a new configuration, while its workers go on."""

from dataclasses import replace
from pathlib import Path

import pytest

from shiftboss.supervisor_conf import updating, written
from shiftboss.supervisor_conf.installation import InstallationError
from shiftboss.supervisor_conf.written import Written
from tests.programs.supervisords import START_SECONDS, supervisord
from tests.programs.test_render import installation
from tests.programs.test_supervisor_listener import program, serving
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("L28")

OLD = [
    program("worker-default-1", "exec sleep 600", pool="default"),
    program("web", "exec sleep 600"),
    program("maintainer", "exec sleep 600"),
    program("postgres", "exec sleep 600"),
    program("gone", "exec sleep 600"),
]


def test_what_is_new_changed_or_gone_is_brought_to_the_settings_and_workers_wait_for_their_turn(
    tmp_path: Path,
) -> None:
    changed = {"environment": {"SHIFTBOSS_CODE_VERSION": "v2"}}
    new = [replace(one, **changed) for one in OLD if one.name in ("worker-default-1", "web", "postgres")]
    new += [OLD[2], program("worker-default-2", "exec sleep 600", pool="default")]
    said: list[str] = []
    with serving(tmp_path, OLD) as host:
        before = {one.name: host.pid_of(one.name) for one in OLD}
        wanted = updating.of_up(installation(tmp_path), new)
        assert "+environment = SHIFTBOSS_CODE_VERSION" in wanted.difference
        assert "-[program:gone]" in wanted.difference
        wanted.write()
        assert host.programs().keys() == before.keys()
        wanted.read_in(stop_seconds=START_SECONDS, say=said.append)
        names = {"worker-default-1", "worker-default-2", "web", "maintainer", "postgres"}
        wait_for(lambda: host.programs().keys() == names, seconds=START_SECONDS)
        after = {name: host.pid_of(name) for name in names}
        assert {name for name in names if before.get(name) != after[name]} == {"web", "worker-default-2"}
        assert "gone: stopping" in said
        assert "postgres: changed, and left as it is until everything is started anew" in said
        assert updating.of_up(installation(tmp_path), new).difference == ""


MAIN = """
[unix_http_server]
file = {socket}
[supervisord]
nodaemon = true
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[include]
files = ours.conf
[program:theirs]
command = sleep {seconds}
"""


def test_of_a_supervisord_that_runs_other_things_too_only_what_is_ours_is_touched(tmp_path: Path) -> None:
    socket, file, main = tmp_path / "their.sock", tmp_path / "ours.conf", tmp_path / "main.conf"
    by = Written(home=tmp_path, include=True, prefix="sb-", socket=socket, env_file=tmp_path / "env")
    old = [replace(OLD[0], environment={"V": "1"}), OLD[1], OLD[4]]
    new = [replace(one, environment={"V": "2"}) for one in old[:2]]
    by.write(file, old)
    assert written.load(tmp_path) == (file, by)
    main.write_text(MAIN.format(socket=socket, seconds=600))
    with supervisord(main, socket) as host:
        names = ("theirs", "sb-worker-default-1", "sb-web", "sb-gone")
        before = {name: host.pid_of(name) for name in names}
        main.write_text(MAIN.format(socket=socket, seconds=601))
        wanted = updating.of_written(file, by, socket, new)
        assert "-[program:sb-gone]" in wanted.difference
        wanted.write()
        wanted.read_in(stop_seconds=START_SECONDS, say=lambda text: None)
        wait_for(lambda: set(host.programs()) == set(names[:3]), seconds=START_SECONDS)
        after = {name: host.pid_of(name) for name in names[:3]}
        assert [name for name in names[:3] if before[name] != after[name]] == ["sb-web"]
        assert updating.of_written(file, by, socket, new).difference == ""


def test_what_is_no_note_of_a_written_configuration_is_told(tmp_path: Path) -> None:
    assert written.load(tmp_path) is None
    for text in ("{", "[]", '{"file": "a", "by": {"home": "b"}}'):
        (tmp_path / written.NOTE).write_text(text)
        with pytest.raises(InstallationError, match="writes it anew"):
            written.load(tmp_path)
