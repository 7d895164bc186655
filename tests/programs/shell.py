"""Commands of `shiftboss` in this process, at a terminal or not, and what they say."""

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from shiftboss.cli import main


@dataclass(frozen=True, slots=True)
class Ran:
    """The exit code of a command, and what it has printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, for programs."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """Its output, for people."""
        return self.out.splitlines()


class Shell:
    """Runs commands as somebody would who has typed them."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *words: object) -> Ran:
        """Run one command."""
        self._capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:
            code = int(str(ended.code))
        said = self._capsys.readouterr()
        return Ran(code, said.out, said.err)

    def at_a_terminal(self, *answers: str) -> None:
        """From now on somebody sits there, who answers so."""
        typed = io.StringIO("".join(f"{answer}\n" for answer in answers))
        self._monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
        self._monkeypatch.setattr(sys, "stdin", typed)
        self._monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
