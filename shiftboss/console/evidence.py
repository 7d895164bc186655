"""What an attempt has kept, laid out for reading.

What is not of the shape that is known, or was told by another version, is left as JSON: nothing is lost.
"""

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from shiftboss.console import pretty, sight, text

LONGEST_FACT = 300
"""Characters of a fact; what is longer is none of a worker's."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is known of an attempt. `exact` is all of what `value` begins with, `note` a word on it."""

    name: str
    value: str
    exact: str = ""
    note: str = ""
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of an attempt. `checkpoint` and `rest` are JSON texts."""

    facts: tuple[Fact, ...]
    checkpoint: str | None
    output: str | None
    rest: str | None


def read(evidence: str, *, args_sha256: str) -> Evidence:
    """An attempt's evidence, from its JSON text; `args_sha256` is of the arguments that the job has."""
    told = sight.members(evidence)
    if told is None:
        return Evidence((), None, None, evidence)
    left = _Left(told)
    facts = (
        _ran_on(left),
        _ended(left),
        _processor(left),
        _memory(left),
        _arguments(left, args_sha256),
        _checkpoint_length(left),
    )
    output = left.text("output", longest=sight.READABLE_CHARACTERS)
    return Evidence(
        tuple(fact for fact in facts if fact is not None),
        checkpoint=left.any("checkpoint"),
        output=None if output is None else text.plain(output),
        rest=left.rest(),
    )


class _Left:
    """Members of an object, taken one by one, each where it is of the kind that is asked for."""

    def __init__(self, members: Mapping[str, str]) -> None:
        self._members = dict(members)

    def any(self, name: str) -> str | None:
        """A value as JSON."""
        return self._members.pop(name, None)

    def text(self, name: str, *, longest: int = LONGEST_FACT) -> str | None:
        """A text that is not empty."""
        value = self._members.get(name, "")
        if not value.startswith('"') or value == '""':
            return None
        found = str(json.loads(value))
        if len(found) > longest:
            return None
        del self._members[name]
        return found

    def number(self, name: str) -> int | None:
        """A whole number from 0 on, of a size that something measured can have."""
        if not _NUMBER.fullmatch(self._members.get(name, "")):
            return None
        return int(self._members.pop(name))

    def is_true(self, name: str) -> bool:
        """Whether it is so; what is not so, or not known, is not told."""
        if self._members.get(name) not in ("true", "false"):
            return False
        return self._members.pop(name) == "true"

    def rest(self) -> str | None:
        """What nobody has taken."""
        return pretty.of_members(self._members) if self._members else None


def _ran_on(left: _Left) -> Fact | None:
    host, pid = left.text("host"), left.number("pid")
    process = None if pid is None else (_("process %(pid)s") % {"pid": pid}).replace(" ", "\N{NO-BREAK SPACE}")
    said = ", ".join(part for part in (host, process) if part)
    return Fact(_("Ran on"), said) if said else None


def _ended(left: _Left) -> Fact | None:
    cause, code, number = left.text("cause"), left.number("exit_code"), left.number("signal")
    plain, said = "", ""
    if number is not None:
        name = _signal_name(number)
        plain, said = f"killed by {name}", _("killed by %(signal)s") % {"signal": name}
    elif code is not None:
        plain, said = f"exited with {code}", _("exited with %(code)s") % {"code": code}
    if cause and cause != plain:
        said = f"{cause} ({said})" if said else cause
    if not said:
        return None
    late = left.is_true("past_deadline")
    return Fact(_("Its process"), said, note=_("past the deadline that its worker had set") if late else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _processor(left: _Left) -> Fact | None:
    used = left.number("cpu_ms")
    return None if used is None else Fact(_("CPU"), text.duration(used / 1000))


def _memory(left: _Left) -> Fact | None:
    peak = left.number("memory_kb")
    if peak is None:
        return None
    shared = _("shared with other jobs of the process") if left.is_true("memory_shared") else ""
    return Fact(_("Memory"), _("peak %(size)s") % {"size": text.size(peak * 1024)}, note=shared)


def _arguments(left: _Left, args_sha256: str) -> Fact | None:
    digest = left.text("args_sha256")
    if digest is None:
        return None
    if not _SHA256.fullmatch(digest):
        return Fact(_("Arguments"), digest)
    same = digest == args_sha256
    note = _("those of the job") if same else _("not those that the job has now")
    return Fact(_("Arguments"), digest[:12], exact=digest, note=note, is_wrong=not same)


def _checkpoint_length(left: _Left) -> Fact | None:
    length = left.number("checkpoint_characters")
    if length is None:
        return None
    said = _("%(n)s characters, too long to be kept with the attempt") % {"n": text.number(length)}
    return Fact(_("Checkpoint"), said)
