"""The language in which jobs are searched: `queue:mail -task:*.cleanup error:timeout run>5m "no such host"`.

A query is a list of terms, all of which must hold. Plain functions: nothing here reads a clock or the record.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from shiftboss.queue.states import QuarantineReason, State

MAX_CHARACTERS = 2000
MAX_TERMS = 40
MAX_VALUES = 100
MAX_MISTAKES = 5
LARGEST_ID = 2**63 - 1
LARGEST_NUMBER = 2**31 - 1
LONGEST_MS = 100 * 366 * 86_400_000


class Kind(StrEnum):
    """What values a field has."""

    TEXT = "text"
    STATE = "state"
    REASON = "reason"
    ID = "id"
    NUMBER = "number"
    TIME = "time"
    DURATION = "duration"
    JSON = "json"


class Field(NamedTuple):
    """What a term can ask for: the kind of its values, what it finds, and an example."""

    kind: Kind
    finds: Promise
    example: str


FIELDS: dict[str, Field] = {
    "id": Field(Kind.ID, gettext_lazy("jobs with these ids; a number alone is an id too"), "id:4711,4712"),
    "queue": Field(Kind.TEXT, gettext_lazy("jobs of the queue"), "queue:mail"),
    "task": Field(
        Kind.TEXT, gettext_lazy("jobs of the task: its whole name, or its end after a dot"), "task:send"
    ),
    "state": Field(Kind.STATE, gettext_lazy("jobs in the state"), "state:running,retryable"),
    "reason": Field(Kind.REASON, gettext_lazy("quarantined jobs, by why they are held back"), "reason:poison"),
    "owner": Field(Kind.TEXT, gettext_lazy("jobs of the owner"), "owner:user_7"),
    "key": Field(
        Kind.TEXT, gettext_lazy("jobs with the key; of an owner's jobs together with owner:"), "key:invoice-7"
    ),
    "error": Field(
        Kind.TEXT, gettext_lazy("jobs whose last error has the text in its type or message"), "error:timeout"
    ),
    "worker": Field(Kind.ID, gettext_lazy("jobs that the worker runs or finished"), "worker:12"),
    "tag": Field(Kind.TEXT, gettext_lazy("jobs with the tag"), "tag:nightly"),
    "rerun_of": Field(Kind.ID, gettext_lazy("reruns of the job"), "rerun_of:4711"),
    "batch": Field(Kind.ID, gettext_lazy("jobs of the backfill"), "batch:3"),
    "priority": Field(Kind.NUMBER, gettext_lazy("jobs of the priority"), "priority>0"),
    "attempt": Field(Kind.NUMBER, gettext_lazy("jobs that were run so many times"), "attempt>3"),
    "run": Field(Kind.DURATION, gettext_lazy("jobs that ran, or have been running, so long"), "run>5m"),
    "enqueued": Field(Kind.TIME, gettext_lazy("jobs enqueued after or before a time"), "enqueued>2h"),
    "due": Field(Kind.TIME, gettext_lazy("jobs due after or before a time"), "due<+1h"),
    "started": Field(Kind.TIME, gettext_lazy("jobs last started after or before a time"), "started<30m"),
    "finished": Field(
        Kind.TIME, gettext_lazy("jobs that ended after or before a time"), "finished>2030-05-01T14:00"
    ),
    "args": Field(Kind.JSON, gettext_lazy("jobs with this argument; needs a permission"), "args.order.id=7"),
    "meta": Field(Kind.JSON, gettext_lazy("jobs with this in their meta data"), "meta.source=import"),
}

COMPARISONS = (">=", "<=", ">", "<")
IS = ":"
_OPS: dict[Kind, tuple[str, ...]] = {
    Kind.ID: (IS, *COMPARISONS),
    Kind.NUMBER: (IS, *COMPARISONS),
    Kind.TIME: COMPARISONS,
    Kind.DURATION: COMPARISONS,
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be met; between its pieces, where there are several, anything may stand."""

    pieces: tuple[str, ...]

    @property
    def literal(self) -> str | None:
        """The text itself where it is met as a whole."""
        return self.pieces[0] if len(self.pieces) == 1 else None

    def __str__(self) -> str:
        bare = "*".join(self.pieces)
        if bare and not any("*" in piece for piece in self.pieces) and not _NEEDS_QUOTES.search(bare):
            return bare
        quoted = "*".join(re.sub(r'(["\\*])', r"\\\1", piece) for piece in self.pieces)
        return f'"{quoted}"'


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time."""

    milliseconds: int

    def __str__(self) -> str:
        for unit, size in reversed(_UNITS.items()):
            if self.milliseconds % size == 0 and self.milliseconds:
                return f"{self.milliseconds // size}{unit}"
        return "0s"


@dataclass(frozen=True, slots=True)
class Ago:
    """A time told from now: so long ago, or (negative) to come."""

    milliseconds: int

    def __str__(self) -> str:
        return f"{'+' if self.milliseconds < 0 else ''}{Duration(abs(self.milliseconds))}"


@dataclass(frozen=True, slots=True)
class At:
    """A time by the calendar."""

    moment: datetime

    def __str__(self) -> str:
        moment = self.moment.astimezone(UTC)
        if moment.microsecond:
            return moment.isoformat().replace("+00:00", "Z")
        return moment.strftime("%Y-%m-%dT%H:%MZ" if not moment.second else "%Y-%m-%dT%H:%M:%SZ")


Value = Text | Duration | Ago | At | State | QuarantineReason | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One thing that must hold of a job, or (negated) must not.

    `name` is a key of FIELDS; empty for a bare word, which is looked for in task and error. One of `values` is
    enough. `path`: which member of a JSON value.
    """

    name: str
    op: str = IS
    values: tuple[Value, ...]
    path: tuple[str, ...] = ()
    negated: bool = False

    def __str__(self) -> str:
        sign = "-" if self.negated else ""
        if not self.name:
            [word] = self.values
            text = str(word)
            plain = text.startswith('"') or (_BARE_WORD.fullmatch(text) and not text.isdigit())
            return sign + (text if plain else _quoted(word))
        name = ".".join((self.name, *self.path))
        op = "=" if FIELDS[self.name].kind is Kind.JSON else self.op
        return f"{sign}{name}{op}{','.join(map(str, self.values))}"


def _quoted(word: Value) -> str:
    assert isinstance(word, Text)
    inner = "*".join(re.sub(r'(["\\*])', r"\\\1", piece) for piece in word.pieces)
    return f'"{inner}"'


@dataclass(frozen=True, slots=True)
class Mistake:
    """What cannot be read: where it stands in the text, what is wrong with it, and the nearest that is right."""

    at: int
    length: int
    problem: str
    nearest: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """What was read: the text, its terms, and its mistakes. A text with mistakes means nothing."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    mistakes: tuple[Mistake, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))

    def without(self, term: Term) -> "Query":
        """The same without one term."""
        return of([one for one in self.terms if one != term])

    def literals(self, name: str) -> list[str]:
        """The texts that a field must be one of, as far as the query says so with texts alone."""
        for term in self.terms:
            if term.name == name and not term.negated and term.op == IS:
                texts = [value.literal for value in term.values if isinstance(value, Text)]
                if all(text is not None for text in texts):
                    return [text for text in texts if text is not None]
        return []


def of(terms: Sequence[Term]) -> Query:
    """The query of these terms, each once."""
    unique = tuple(dict.fromkeys(terms))
    return Query(" ".join(map(str, unique)), unique)


def parse(text: str) -> Query:
    """Read a query. Never raises: what cannot be read is among its mistakes."""
    if len(text) > MAX_CHARACTERS:
        problem = _("A query has at most %(n)s characters.") % {"n": MAX_CHARACTERS}
        return Query(text, (), (Mistake(MAX_CHARACTERS, len(text) - MAX_CHARACTERS, problem),))
    if found := _UNSTORABLE.search(text):
        problem = _("No job has this character in a text.")
        return Query(text, (), (Mistake(found.start(), 1, problem),))
    reader = _Reader(text)
    terms = tuple(dict.fromkeys(reader.terms()))
    if len(terms) > MAX_TERMS:
        problem = _("A query has at most %(n)s terms.") % {"n": MAX_TERMS}
        return Query(text, (), (Mistake(0, len(text), problem),))
    if reader.mistakes:
        return Query(text, (), tuple(reader.mistakes[:MAX_MISTAKES]))
    return Query(text, terms)


_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NEEDS_QUOTES = re.compile(r'[\s",]')
_BARE_WORD = re.compile(r'[^\s",:<>=\-][^\s":<>=]*')
_HEAD = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<path>(?:\.[\w-]+)*)(?P<op>:|>=|<=|>|<|=)")
_PART = re.compile(r"(\d{1,12})(?:\.(\d{1,3}))?(ms|min|s|m|h|d)")


class _Wrong(Exception):
    """A value that its field cannot have."""

    def __init__(self, problem: str, nearest: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.nearest = problem, nearest


@dataclass(slots=True)
class _Reader:
    """Reads a text from the left to the right, and goes on behind a mistake."""

    text: str
    at: int = 0
    mistakes: list[Mistake] = field(default_factory=list)

    def terms(self) -> Iterator[Term]:
        """The terms that can be read."""
        while self._skip_spaces():
            begin = self.at
            negated = self._take("-")
            if negated and (self.at == len(self.text) or self.text[self.at].isspace()):
                self._note(begin, _("A minus stands right before what must not be."))
                continue
            term = self._field(begin, negated=negated) if self._peek() != '"' else self._word(negated=negated)
            if term is not None:
                yield term

    def _skip_spaces(self) -> bool:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _take(self, sign: str) -> bool:
        taken = self._peek() == sign
        self.at += taken
        return taken

    def _note(self, begin: int, problem: str, nearest: str | None = None) -> None:
        self.mistakes.append(Mistake(begin, max(self.at - begin, 1), problem, nearest))

    def _word(self, *, negated: bool) -> Term | None:
        begin = self.at
        value = self._quoted_text() if self._peek() == '"' else self._bare(stop="")
        if value is None:
            return None
        if value.pieces == ("",):
            self._note(begin, _("There is nothing between these quotes."))
            return None
        number = value.literal if self.text[begin] != '"' else None
        if number and number.isascii() and number.isdigit() and len(number) <= 19 and int(number) <= LARGEST_ID:
            return Term(name="id", values=(int(number),), negated=negated)
        return Term(name="", values=(value,), negated=negated)

    def _field(self, begin: int, *, negated: bool) -> Term | None:
        head = _HEAD.match(self.text, self.at)
        if head is None:
            return self._word(negated=negated)
        self.at = head.end()
        name, path = head["name"].lower(), tuple(head["path"].split(".")[1:])
        known = len(self.mistakes)
        values = list(self._values())
        problem = _trouble_of_head(name, path, head["op"])
        if problem is not None:
            text, nearest = problem
            self.mistakes.append(Mistake(head.start(), head.end() - head.start(), text, nearest))
            return None
        if not values and len(self.mistakes) == known:
            self._note(begin, _("A value must follow, as in %(example)s.") % {"example": FIELDS[name].example})
            return None
        read = [self._value(name, *one) for one in values]
        if not read or len(self.mistakes) > known:
            return None
        op = IS if head["op"] == "=" else head["op"]
        if op != IS and len(read) > 1:
            self._note(begin, _("Only one value can be compared with."))
            return None
        if len(read) > MAX_VALUES:
            self._note(begin, _("A term has at most %(n)s values.") % {"n": MAX_VALUES})
            return None
        unique = tuple(dict.fromkeys(one for one in read if one is not None))
        return Term(name=name, op=op, values=unique, path=path, negated=negated)

    def _value(self, name: str, begin: int, end: int, text: Text) -> Value | None:
        try:
            return _VALUES[FIELDS[name].kind](text)
        except _Wrong as wrong:
            self.mistakes.append(Mistake(begin, max(end - begin, 1), wrong.problem, wrong.nearest))
            return None

    def _values(self) -> Iterator[tuple[int, int, Text]]:
        while self._peek() and not self._peek().isspace():
            begin = self.at
            value = self._quoted_text() if self._peek() == '"' else self._bare(stop=",")
            if value is None:
                return
            if self.at == begin:
                self._take(",")
                self._note(begin, _("A value is missing before this comma."))
                continue
            yield begin, self.at, value
            if self._peek() == '"' or (
                self._peek() and self.text[self.at - 1] == '"' and self._peek() not in ", \t\n"
            ):
                self._note(self.at, _("A comma stands between two values."))
            if self._take(",") and (not self._peek() or self._peek().isspace()):
                self._note(self.at - 1, _("A value is missing behind this comma."))

    def _bare(self, *, stop: str) -> Text:
        begin = self.at
        while (sign := self._peek()) and not sign.isspace() and sign != '"' and sign not in (stop or " "):
            self.at += 1
        return Text(tuple(self.text[begin : self.at].split("*")))

    def _quoted_text(self) -> Text | None:
        begin = self.at
        self.at += 1
        pieces, piece = [], ""
        while (sign := self._peek()) and sign != '"':
            self.at += 1
            if sign == "\\" and self._peek() and self._peek() in '"\\*':
                piece += self._peek()
                self.at += 1
            elif sign == "*":
                pieces.append(piece)
                piece = ""
            else:
                piece += sign
        if not self._take('"'):
            self._note(begin, _("This quote is not closed."))
            return None
        return Text((*pieces, piece))


def _trouble_of_head(name: str, path: tuple[str, ...], op: str) -> tuple[str, str | None] | None:
    if name not in FIELDS:
        near = next(iter(get_close_matches(name, FIELDS, n=1, cutoff=0.6)), None)
        told = _("There is no field “%(name)s”. Put the text in quotes to search for it.") % {"name": name[:40]}
        return told, near and f"{near}{op}"
    kind = FIELDS[name].kind
    if kind is Kind.JSON and (not path or op not in "=:"):
        return _("This is asked as in %(example)s.") % {"example": FIELDS[name].example}, None
    if kind is not Kind.JSON and path:
        return _("The field “%(name)s” has no members.") % {"name": name}, f"{name}{op}"
    if (IS if op == "=" else op) not in _OPS.get(kind, (IS,)) and kind is not Kind.JSON:
        return _("This is asked as in %(example)s.") % {"example": FIELDS[name].example}, None
    return None


def _plain(text: Text) -> str:
    if text.literal is None:
        raise _Wrong(_("A star cannot stand here."))
    return text.literal


def _one_of(words: type[StrEnum]) -> Callable[[Text], Any]:
    def read(text: Text) -> Any:
        word = _plain(text).lower()
        if word in list(words):
            return words(word)
        near = next(iter(get_close_matches(word, list(words), n=1, cutoff=0.6)), None)
        told = _("It is one of %(words)s.") % {"words": ", ".join(words)}
        raise _Wrong(told, str(near) if near else None)

    return read


def _number(most: int, least: int = 0) -> Callable[[Text], int]:
    def read(text: Text) -> int:
        digits = _plain(text)
        # The length first: Python refuses to read thousands of digits.
        if not re.fullmatch(r"-?[0-9]{1,19}", digits) or not least <= int(digits) <= most:
            raise _Wrong(_("It is a whole number from %(least)s to %(most)s.") % {"least": least, "most": most})
        return int(digits)

    return read


def _milliseconds(text: str) -> int | None:
    total, at = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        size = _UNITS["m" if part[3] == "min" else part[3]]
        total += int(part[1]) * size + int((part[2] or "0").ljust(3, "0")) * size // 1000
        at = part.end()
    return total if text and total <= LONGEST_MS else None


def _duration(text: Text) -> Duration:
    found = _milliseconds(_plain(text))
    if found is None:
        raise _Wrong(_("It is a length of time, such as 250ms, 30s, 5m, 2h or 1d."))
    return Duration(found)


def _time(text: Text) -> Ago | At:
    told = _plain(text)
    ago = _milliseconds(told.removeprefix("+"))
    if ago is not None:
        return Ago(-ago if told.startswith("+") else ago)
    try:
        moment = datetime.fromisoformat(told)
        # Without a zone it is meant as pages show it, in UTC.
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = datetime.min.replace(tzinfo=UTC)
    if not told.isascii() or not 1900 <= moment.year <= 9000:
        raise _Wrong(_("It is a time such as 2h (that long ago), +2h (to come), 2030-05-01 or 2030-05-01T14:00."))
    return At(moment)


def _any(text: Text) -> Text:
    if text.pieces == ("",):
        raise _Wrong(_("There is nothing between these quotes."))
    return text


_VALUES: dict[Kind, Callable[[Text], Value]] = {
    Kind.TEXT: _any,
    Kind.JSON: lambda text: text,
    Kind.STATE: _one_of(State),
    Kind.REASON: _one_of(QuarantineReason),
    Kind.ID: _number(LARGEST_ID),
    Kind.NUMBER: _number(LARGEST_NUMBER, -LARGEST_NUMBER),
    Kind.DURATION: _duration,
    Kind.TIME: _time,
}
