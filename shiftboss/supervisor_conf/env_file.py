"""A file of environment variables, read as systemd reads an `EnvironmentFile=`: one `NAME=text` a line.

Empty lines and lines that begin with `#` or `;` say nothing. A text may stand in single or double quotes; within
double quotes a backslash takes the next of `"`, `\\`, `$` and the backquote as it is. Nothing is expanded.
"""

import re
from pathlib import Path

from shiftboss.queue.errors import ShiftbossError

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


class EnvFileError(ShiftbossError):
    """The file cannot be read, or a line is none of its form. The text shows no part of a value."""


def read(file: Path) -> dict[str, str]:
    """The variables by name. Raises EnvFileError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise EnvFileError(f"the file of the environment {file} cannot be read: {reason}") from None
    values: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line[0] in "#;":
            continue
        if not (found := _LINE.fullmatch(line)):
            raise EnvFileError(f"{file}, line {number}: write NAME=text")
        values[found[1]] = _text(found[2].strip(), f"{file}, line {number}")
    return values


def _text(given: str, where: str) -> str:
    quote = given[:1]
    if quote not in ("'", '"') or not quote:
        return given
    if len(given) < 2 or given[-1] != quote:
        raise EnvFileError(f"{where}: the quote is not closed on the same line")
    inner = given[1:-1]
    return inner if quote == "'" else re.sub(r'\\(["\\$`])', r"\1", inner)
