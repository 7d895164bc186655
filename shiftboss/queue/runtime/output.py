"""What a handler writes, kept as the last lines of its run: to `sys.stdout`, to `sys.stderr`, and by `logging`.

By context: what threads of the handler's own write belongs to no run. What an executor with one run at a time
writes in any other way is kept by its keeper, see executor_process.py.
"""

import logging
import sys
from collections import deque
from contextvars import ContextVar
from io import TextIOWrapper
from typing import Any, Protocol, TextIO

MAX_OUTPUT = 4000
"""Characters that are kept of a run: the last ones."""


class Writes(Protocol):
    """A run whose output is kept."""

    def wrote(self, text: str) -> None:
        """Keep what it has written."""


CURRENT: "ContextVar[Writes | None]" = ContextVar("shiftboss_run", default=None)


class Tail:
    """The last characters of a stream, written by any thread; of lines, where there are any, only whole ones.

    What is left of a line could be a value without the key by which it is known for a secret.
    """

    __slots__ = ("_length", "_texts", "_whole")

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._length = 0
        self._whole = True

    def add(self, text: str) -> None:
        """Keep a text, as far as it is among the last."""
        kept = text[-MAX_OUTPUT:]
        self._texts.append(kept)
        self._length += len(kept)
        self._whole = self._whole and len(kept) == len(text)
        while self._texts and self._length - len(self._texts[0]) >= MAX_OUTPUT:
            self._length -= len(self._texts.popleft())
            self._whole = False

    def __str__(self) -> str:
        text = "".join(self._texts)
        if self._whole and len(text) <= MAX_OUTPUT:
            return text
        text = text[-MAX_OUTPUT:]
        return text.partition("\n")[2] or text.partition(" ")[2]


class _Tee:
    """A stream that also keeps what is written to it by runs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if (run := CURRENT.get()) is not None:
            run.wrote(text)
        return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Keep(logging.Handler):
    """Keeps log lines of runs."""

    def emit(self, record: logging.LogRecord) -> None:
        if (run := CURRENT.get()) is not None:
            try:
                run.wrote(self.format(record) + "\n")
            except Exception:
                self.handleError(record)


def keep() -> None:
    """From now on, keep what runs write in this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # whoever dies has written its last line
    sys.stdout, sys.stderr = _Tee(sys.stdout), _Tee(sys.stderr)
    if logging.root.handlers:  # without any, warnings come by sys.stderr
        handler = _Keep()
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
        logging.root.addHandler(handler)
