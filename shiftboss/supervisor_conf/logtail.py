"""The last lines of a program's log, with nothing in them that hurts whoever reads them."""

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

MOST_LINES = 200
MOST_BYTES = 64 * 1024
MOST_CHARACTERS = 2000
"""Of one line; what is beyond is left out."""

_CONTROLS = re.compile(
    r"""
      \x1b \[ [0-?]* [ -/]* [@-~]          # colours, movements of the cursor
    | \x1b [\]PX^_] [^\x07\x1b]* (?: \x07 | \x1b\\ )?   # titles, links
    | \x1b .?
    """,
    re.VERBOSE | re.DOTALL,
)
_ODD = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def last_lines(file: Path, *, redacted: Callable[[str], str]) -> str | None:
    """The last lines of a log as they may be seen; None where there is no such log.

    Of a file of any size so many bytes are read at most. A line whose beginning is not among them is left out: it
    could hold a secret without the key by which it is known for one. Where that is all there is, it is said.
    """
    try:
        text, is_whole = _end_of(file)
    except OSError:
        return None
    if not is_whole:
        _, newline, text = text.partition("\n")
        if not newline:
            return f"… a line of more than {MOST_BYTES // 1024} KiB is left out"
    lines = redacted(_ODD.sub("\N{REPLACEMENT CHARACTER}", _CONTROLS.sub("", text))).splitlines()[-MOST_LINES:]
    return "\n".join(line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} …" for line in lines)


def _end_of(file: Path) -> tuple[str, bool]:
    """The end of a regular file, and whether that is all of it. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{file} is no file")
        begin = max(0, found.st_size - MOST_BYTES)
        return os.pread(descriptor, MOST_BYTES, begin).decode(errors="replace"), begin == 0
    finally:
        os.close(descriptor)
