"""JSON laid out for reading, without reading its numbers: each digit stays as it was stored.

The text is re-spaced token by token, so a number beyond 2^53 is never rounded and nesting of any depth
needs no stack.
"""

import json
import re

INDENT = "  "
NARROW = 76
"""A list or object that fits into so many characters stays on one line."""

DEEPEST = 40
"""Deeper levels are not indented further: the text would grow with the square of its depth."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def indented(text: str) -> str:
    """A JSON text, as PostgreSQL prints jsonb, with one member a line where a line would be too long."""
    tokens = _TOKEN.findall(text)
    ends = _narrow_ends(tokens)
    lines: list[str] = []
    line: list[str] = []
    depth = 0
    flat_until = -1
    for at, token in enumerate(tokens):
        flat = at <= flat_until
        if token in "{[" and not flat and at in ends:
            flat_until, flat = ends[at], True
        if token in "}]" and not flat:
            depth -= 1
            lines.append("".join(line))
            line = [INDENT * min(depth, DEEPEST)]
        line.append(_spaced(token))
        if not flat and token in "{[,":
            depth += token != ","
            lines.append("".join(line).rstrip())
            line = [INDENT * min(depth, DEEPEST)]
    lines.append("".join(line))
    return "\n".join(lines)


def members(text: str) -> dict[str, str] | None:
    """The members of a JSON object, each value as the text that it is; None where the text is no object."""
    found: dict[str, str] = {}
    name: str | None = None
    depth = start = end = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        if depth == 0 and word != "{":
            return None
        if depth == 1 and word in ",}":
            if name is not None:
                found[name] = text[start:end].strip()
            name = None
        elif depth == 1 and name is None:
            if not word.startswith('"'):
                return None
            name = str(json.loads(word, strict=False))
        elif depth == 1 and word == ":":
            start = token.end()
        depth += (word in "{[") - (word in "}]")
        end = token.end()
    return found if end else None


def of_members(members: dict[str, str]) -> str:
    """The JSON object that has these members."""
    return (
        "{"
        + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {value}" for name, value in members.items())
        + "}"
    )


def _spaced(token: str) -> str:
    return token + " " if token in ":," else token


def _narrow_ends(tokens: list[str]) -> dict[int, int]:
    """For each opening bracket whose content is narrow: the place of its closing one."""
    ends: dict[int, int] = {}
    opened: list[tuple[int, int]] = []
    width = 0
    for at, token in enumerate(tokens):
        width += len(_spaced(token))
        if token in "{[":
            opened.append((at, width))
        elif token in "}]" and opened:
            start, before = opened.pop()
            if width - before <= NARROW:
                ends[start] = at
    return ends
