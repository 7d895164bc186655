"""A supervisord that runs is brought to a new configuration, while its workers go on."""

from dataclasses import replace
from pathlib import Path

import pytest

from shiftboss.supervisor_conf import updating
from shiftboss.supervisor_conf.foreground import CONFIGURATION
from tests.programs.supervisords import START_SECONDS
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
        wanted = updating.wanted(installation(tmp_path), new)
        assert "+environment = SHIFTBOSS_CODE_VERSION" in wanted.difference
        assert "-[program:gone]" in wanted.difference
        wanted.write()
        assert (tmp_path / CONFIGURATION).read_text() == wanted.text
        assert host.programs().keys() == before.keys()
        wanted.read_in(stop_seconds=START_SECONDS, say=said.append)
        names = {"worker-default-1", "worker-default-2", "web", "maintainer", "postgres"}
        wait_for(lambda: host.programs().keys() == names, seconds=START_SECONDS)
        after = {name: host.pid_of(name) for name in names}
        assert {name for name in names if before.get(name) != after[name]} == {"web", "worker-default-2"}
        assert "gone: stopping" in said
        assert "postgres: changed, and left as it is until everything is started anew" in said
        assert updating.wanted(installation(tmp_path), new).difference == ""
