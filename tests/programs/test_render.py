"""The configuration of supervisord, read back by supervisord's own parser."""

import contextlib
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from supervisor.options import ServerOptions

from shiftboss.conf import Config, Pool, read
from shiftboss.supervisor_conf import programs, render
from shiftboss.supervisor_conf.installation import Installation
from shiftboss.supervisor_conf.programs import Program, RenderError


def installation(home: Path, *, embedded: bool = False) -> Installation:
    """An installation that exists on paper."""
    (home / "log").mkdir(parents=True, exist_ok=True)
    return Installation(
        home=home,
        settings="shiftboss.site.settings",
        path=("/somewhere",),
        database_url="postgresql://u:pa55word@h/d",
        embedded=embedded,
        host="127.0.0.1",
        port=8300,
    )


def parsed(home: Path, text: str) -> ServerOptions:
    """What supervisord makes of the text, read in the home as it does."""
    file = home / "supervisord.conf"
    file.write_text(text)
    options = ServerOptions()
    with contextlib.chdir(home):
        options.realize(["-c", str(file)])
    return options


def sections(options: ServerOptions) -> dict[str, Any]:
    """supervisord's process configurations by name, one group each."""
    found = {}
    for group in options.process_group_configs:
        [process] = group.process_configs
        assert group.name == process.name
        found[process.name] = process
    return found


@pytest.mark.requirement("C2")
def test_every_worker_of_every_pool_is_a_group_of_its_own(tmp_path: Path) -> None:
    config = read({"POOLS": {"heavy": {"workers": 2}, "quick": {"queues": ["a", "b"]}}, "DRAIN_SECONDS": 33})
    found = programs.programs(config, installation(tmp_path, embedded=True))
    parts = sections(parsed(tmp_path, render.render(installation(tmp_path), found)))
    assert set(parts) == {
        "postgres",
        "listener",
        "maintainer",
        "web",
        "worker-heavy-1",
        "worker-heavy-2",
        "worker-quick-1",
    }
    worker = parts["worker-heavy-2"]
    assert (worker.stopasgroup, worker.killasgroup) == (False, True)
    assert worker.stopwaitsecs > 33
    assert worker.command.endswith("shiftboss_worker --pool heavy")


def test_no_database_of_our_own_is_started_beside_a_given_one(tmp_path: Path) -> None:
    found = programs.programs(Config(), installation(tmp_path))
    assert "postgres" not in {program.name for program in found}


def test_all_but_the_database_wait_behind_the_gate(tmp_path: Path) -> None:
    given = replace(installation(tmp_path, embedded=True), first_command="check")
    for program in programs.programs(Config(), given):
        assert ("shiftboss.supervisor_conf.gate" in render.supervised(program, tmp_path)) == (
            program.name != "postgres"
        )


@pytest.mark.parametrize(
    "word", ["100%", "%(here)s", "a b", "it's", 'say "x"', "semi;colon", "#x", "ü", "\\", "$HOME"]
)
def test_any_word_of_a_command_arrives_as_it_was(tmp_path: Path, word: str) -> None:
    command = ["/bin/echo", word, f"x{word}"]
    program = Program(name="odd", command=command, priority=1, stop_seconds=1)
    options = parsed(tmp_path, render.render(installation(tmp_path), [program]))
    assert shlex.split(sections(options)["odd"].command)[-3:] == command


@pytest.mark.parametrize("text", ["100%", "a,b", "it's", 'say "x" now', "%(here)s", "a=b", "", "ü"])
def test_any_text_in_the_environment_arrives_as_it_was(tmp_path: Path, text: str) -> None:
    program = Program(
        name="odd", command=["/bin/true"], priority=1, stop_seconds=1, environment={"ONE": text, "TWO": "2"}
    )
    options = parsed(tmp_path, render.render(installation(tmp_path), [program]))
    assert sections(options)["odd"].environment == {"ONE": text, "TWO": "2"}


@pytest.mark.parametrize("folder", ["a b", "100%", "it's", "%(here)s", "x;y"])
def test_any_home_will_do(tmp_path: Path, folder: str) -> None:
    home = tmp_path / folder
    found = programs.programs(Config(), installation(home))
    options = parsed(home, render.render(installation(home), found))
    assert options.logfile == str(home / "log" / "supervisord.log")
    web = sections(options)["web"]
    assert web.stdout_logfile == "log/web.log"


@pytest.mark.parametrize("folder", ["a ;b", "a #b", "a\nb", "end "])
def test_a_home_that_cannot_be_written_down_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(RenderError, match="choose another"):
        render.render(installation(tmp_path / folder), [])


def test_a_pool_whose_name_supervisord_cannot_hold_is_refused(tmp_path: Path) -> None:
    config = Config(pools={"a b": Pool(name="a b")})
    with pytest.raises(RenderError, match="'a b'"):
        programs.programs(config, installation(tmp_path))


def test_secrets_are_inherited_and_not_written_down(tmp_path: Path) -> None:
    text = render.render(installation(tmp_path), programs.programs(Config(), installation(tmp_path)))
    assert "pa55word" not in text


def test_supervisord_runs_as_whoever_started_it(tmp_path: Path) -> None:
    text = render.render(installation(tmp_path), [])
    assert ("user = root" in text) == (os.geteuid() == 0)
