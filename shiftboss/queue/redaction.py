"""Takes out of texts and of JSON-like data what stands behind a name that says it is secret.

What is known of a value is its name: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`,
`postgres://user:…@host`. A text is read once, from its beginning to its end, in a time that grows with its length.
Where it is not clear how far a value goes, more of the text is masked and not less.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from shiftboss.queue.payload import TYPED
from shiftboss.queue.secrets import MASK

log = logging.getLogger("shiftboss.redaction")

KEYS = (
    *("*password*", "*passwd*", "*passphrase*", "*passcode*", "pass", "pwd", "pw", "pgpass", "*secret*", "*token"),
    *("auth", "authorization", "*credential*", "bearer", "jwt", "otp", "pin", "cvc", "cvv", "card_number"),
    *("api_key", "access_key", "account_key", "auth_key", "encryption_key", "master_key", "private_key"),
    *("signing_key", "ssh_key", "session_key", "session_id", "signature", "sig", "cookie", "cookies"),
    *("csrf*", "xsrf*"),
)
"""Patterns of the keys whose values are masked; see `Redactor`."""

LONGEST_TEXT = 256 * 1024
"""Of a longer text the middle is left out, before anything is looked for."""

MOST_ITEMS = 200_000
"""Data with more of them is replaced by a mask as a whole."""

WITH_BLANKS = frozenset(("authorization", "cookie", "cookies", "passphrase"))
"""Words of keys whose value goes on to the end of its line where it stands without quotes after a colon."""

NO_VALUES = frozenset(("None", "null", "True", "False", "true", "false", "{}", "[]", "()"))

LONGEST_OVERHANG = 200
"""A quote is looked for within so many characters, where one within the value seems to have closed it."""

LONGEST_ODD_PASSWORD = 500
"""Within an address, with a raw slash in it."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_WORD_OR_STAR = re.compile(r"\*+|[^\W_]+")

_PLACE = re.compile(
    r"""
      (?P<url> :// )
    | (?P<pem> -----BEGIN [ ] [A-Z0-9 ]{0,40} PRIVATE [ ] KEY )
    | (?<![\w.$-]) bearer [ \t]++ (?P<bearer> [\w.~+/=-]++ ) (?! [ \t]*+ : )
    | (?<![\w.$-]) (?P<key> [\w.$-]++ ) (?P<quote> \\{0,15} ["'] )? [)\]]? [ \t]*+
      (?P<sep> : (?!//) =? | !? ={1,3}+ >? ) [ \t]*+
    | (?<![\w.$-]) (?P<flag> --? [A-Za-z] [\w-]*+ ) (?: \\{0,15} ["'] , )? [ \t]++ (?! - )
    | \( b? (?P<pair_quote> \\{0,15} ["'] ) (?P<pair> [\w.-]++ ) (?P=pair_quote) , [ \t]*+
    | \( (?P<columns> [^()\n]{1,500}+ ) \) = (?= \( )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OPENED = re.compile(r"[bru]{0,2}(?P<slashes>\\{0,15})(?P<quote>[\"'])", re.IGNORECASE)
_ENCLOSED = re.compile(r"[bru]{0,2}\\{0,15}[\"'(\[{]", re.IGNORECASE)
_PLAIN = re.compile(r"(?:[^\s()\[\]{},;&\"'\\]|\\(?![\"']))++")
_BREAK = re.compile(r"(?:[)\]},;&\"']|\\++(?=[\"']))++")
_SEPARATES = re.compile(r"[,;&]")
_NEXT_KEY = re.compile(r"[ \t]*+[\w.\[\]-]{1,40}+\\{0,15}[\"']?[ \t]*+[:=]")
_NEXT_ITEM = re.compile(r"[\"'],[ru]?[\"']")
_IN_BRACKETS = re.compile(
    r"""
      (?: [^"'()\[\]{}\\] | \\. )++
    | " (?: [^"\\\n] | \\. )*+ "
    | ' (?: [^'\\\n] | \\. )*+ '
    | ["'\\]
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE = re.compile(r"[^\r\n]*+")
_LINE_TO_QUOTE = re.compile(r"[^\r\n\"']*+")
_AUTHORITY = re.compile(r"[^\s\"'<>\\/?#]*+")
_ADDRESS = re.compile(r"[^\s\"'<>\\]*+")
_PORT = re.compile(r"\d{1,5}(?![^/?#\s,])")

Spot = tuple[int, int, str]
"""Where something begins and ends that is to be hidden, and what comes in its place."""


class Redactor:
    """Masks by the patterns `KEYS` and by `keys`, then hands each text on to `hook`.

    A pattern is one or more words, and fits a key in which they stand side by side: `api_key` fits `API-KEY`,
    `stripeApiKey` and `apikey`, but not `key`. A star stands for any part of a word: `*token` fits `accesstoken`.
    `hook` takes a text and returns the text that may be seen. Where it raises, or gives something else, a mask
    that says so comes in the place of the whole text. No method raises.
    """

    def __init__(self, keys: Iterable[str] = (), hook: Callable[[str], str] | None = None) -> None:
        patterns = "|".join(filter(None, map(_compiled, (*KEYS, *keys))))
        self._anywhere = re.compile(rf"_(?:{patterns})\d*_")
        self._at_the_end = re.compile(rf"_(?:{patterns})(?:_provided|_given)?_\Z")
        self._hook = hook
        self._hook_has_failed = False
        self._known: dict[str, bool] = {}

    def text(self, text: str) -> str:
        """The text as it may be seen. Of more than `LONGEST_TEXT` characters the middle is left out."""
        try:
            masked = _Reading(_bounded(text), self).masked()
        except Exception as error:
            return _instead(error)
        return masked if self._hook is None else self._hooked(masked)

    def data(self, value: Any) -> Any:
        """JSON-like data of the same shape, with a mask for each text and number behind such a key, at any depth.

        All other texts in it are seen to as by `text`. Tuples come back as lists; None, True, False and the empty
        text stay what they are.
        """
        try:
            return walked(value, leaf=self._leaf, hides=self.hides)
        except Exception as error:
            return _instead(error)

    def json_text(self, text: str) -> str:
        """As `data`, of a JSON text; what comes out is one too."""
        try:
            return rewritten(text, self.data)
        except Exception as error:
            return json.dumps(_instead(error))

    def hides(self, key: str) -> bool:
        """Whether what stands behind this key is to be masked."""
        known = self._known.get(key)
        if known is None:
            # The beginning and the end of a name tell what it is, however long it is.
            name = _joined(key if len(key) <= 200 else f"{key[:100]} {key[-100:]}")
            known = self._remember(key, self._anywhere.search(name) is not None)
        return known

    def hides_phrase(self, phrase: str) -> bool:
        """Whether these words end in the name of something secret, as in `Incorrect API key: …`."""
        known = self._known.get(phrase)
        if known is None:
            known = self._remember(phrase, self._at_the_end.search(_joined(phrase)) is not None)
        return known

    def _remember(self, key: str, answer: bool) -> bool:
        if len(self._known) > 10_000:
            self._known = {}
        self._known[key] = answer
        return answer

    def _leaf(self, value: Any) -> Any:
        return self.text(value) if isinstance(value, str) else value

    def _hooked(self, text: str) -> str:
        assert self._hook is not None
        try:
            seen = self._hook(text)
            if isinstance(seen, str):
                return seen.replace("\x00", "\\x00").encode(errors="backslashreplace").decode()
            problem = f"gave a {type(seen).__name__}"
        except (Exception, SystemExit) as error:
            problem = f"raised {type(error).__name__}"  # its own text may hold what it was given
        if not self._hook_has_failed:
            self._hook_has_failed = True
            log.error("redactor.failed", extra={"problem": problem})
        return f"{MASK} (hidden as a whole: the project's redactor {problem})"


@cache
def by_keys() -> Redactor:
    """The one that needs no settings."""
    return Redactor()


def rewritten(text: str, change: Callable[[Any], Any]) -> str:
    """The JSON text of what `change` makes of the value of this one."""
    value = json.loads(text)
    changed = change(value)
    if changed == value:
        return text
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":"))


def walked(value: Any, *, leaf: Callable[[Any], Any], hides: Callable[[str], bool]) -> Any:
    """Data of the same shape with `leaf(…)` of each key and value, and a mask behind each key that `hides`.

    A value of `payload.TYPED` counts as one value. Raises ValueError where there is no end of it.
    """
    top: list[Any] = [None]
    to_do: list[tuple[Any, Any, Any, bool]] = [(value, top, 0, False)]
    items = 0
    while to_do:
        item, into, at, hidden = to_do.pop()
        made: Any
        if isinstance(item, Mapping) and not _is_typed(item):
            made = {}
            for key, held in item.items():
                behind = hidden or (isinstance(key, str) and hides(key))
                made[name := _free(leaf(key), made)] = None
                to_do.append((held, made, name, behind))
        elif isinstance(item, list | tuple):
            made = [None] * len(item)
            to_do.extend((held, made, place, hidden) for place, held in enumerate(item))
        elif hidden:
            made = item if item is None or isinstance(item, bool) or item == "" else MASK
        else:
            made = leaf(item)
        into[at] = made
        items += 1
        if items + len(to_do) > MOST_ITEMS:
            raise ValueError("too many items")
    return top[0]


def _is_typed(item: Mapping[Any, Any]) -> bool:
    if len(item) != 1:
        return False
    [(key, held)] = item.items()
    return key in TYPED and not isinstance(held, Mapping | list | tuple)


def _free(name: Any, taken: Mapping[Any, Any]) -> Any:
    while name in taken:
        name = f"{name}*"
    return name


def _joined(key: str) -> str:
    return f"_{'_'.join(_WORD.findall(_CAMEL.sub(' ', key))).casefold()}_"


def _compiled(pattern: str) -> str:
    """The regular expression for a pattern, to be looked for in `_joined` keys."""
    spaced = _CAMEL.sub(" ", pattern)
    parts: list[str] = []
    end = 0
    for found in _WORD_OR_STAR.finditer(spaced):
        if parts and found.start() > end:
            parts.append("_?")
        parts.append("[^_]*" if found[0][0] == "*" else re.escape(found[0].casefold()))
        end = found.end()
    return "".join(parts)


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    # What is left of a value at the beginning of the second half has lost its key: its line goes too.
    rest = text[-half:].partition("\n")[2]
    return f"{text[:half]}\n… {len(text) - half - len(rest)} characters left out …\n{rest}"


def _instead(error: Exception) -> str:
    return f"{MASK} (hidden as a whole: it cannot be looked through, {type(error).__name__})"


class _Reading:
    """One pass over one text."""

    def __init__(self, text: str, redactor: Redactor) -> None:
        self._text = text
        self._redactor = redactor
        self._in_brackets = 0

    def masked(self) -> str:
        """The text with masks."""
        text, parts, at = self._text, [""], 0
        for start, end, instead in self._spots():
            if start < at:  # within one that is masked already, or on from there
                at = max(at, end)
            else:
                parts += text[at:start], instead
                at = end
        return "".join(parts) + text[at:]

    def _spots(self) -> Iterator[Spot]:
        """In the order of their beginnings. What is between quotes or brackets is looked through once more: where
        one of them is missing, it has gone too far.
        """
        place = 0
        while (found := _PLACE.search(self._text, place)) is not None:
            place = found.start("bearer") if found["bearer"] else found.end()
            if (spot := self._spot(found)) is not None:
                yield spot
                if spot[1] == len(self._text):
                    return
                if not found["bearer"] and not _ENCLOSED.match(self._text, place):
                    place = spot[1]
            if found["columns"]:
                place = found.start() + 1

    def _spot(self, found: re.Match[str]) -> Spot | None:
        hides, end = self._redactor.hides, found.end()
        match found.lastgroup:
            case "url":
                return self._in_address(end)
            case "pem":
                closed = self._text.find("-----END", end)
                return end, len(self._text) if closed < 0 else closed, f"-----{MASK}"
            case "bearer":
                return *found.span("bearer"), MASK
            case "flag" if hides(found["flag"]):
                return self._value(end)
            case "pair" if hides(found["pair"]):
                return self._value(end)
            case "columns" if any(map(hides, found["columns"].split(","))):
                closed = self._closed(end)
                return end, self._end_of_line(end) if closed < 0 else closed, f"({MASK})"
            case "sep" if hides(found["key"]) or (not found["quote"] and self._ends_a_phrase(found.start("key"))):
                return self._named(found)
        return None

    def _ends_a_phrase(self, start: int) -> bool:
        """Whether the key is the last of some words that name something secret."""
        text = self._text
        before = text[max(0, start - 60) : start]
        if not before.endswith(" "):
            return False
        earlier = [word for word in before.rsplit(" ", 3)[-3:-1] if word.isalnum()]
        end = start
        while end < len(text) and end - start < 40 and (text[end].isalnum() or text[end] in "_-"):
            end += 1
        return bool(earlier) and self._redactor.hides_phrase(" ".join([*earlier, text[start:end]]))

    def _in_address(self, start: int) -> Spot | None:
        """The password of `://user:password@host`, or the user where that is all there is."""
        text = self._text
        end = _end(_AUTHORITY, text, start, len(text))
        at, colon = text.rfind("@", start, end), text.find(":", start, end)
        if at < 0:
            if colon < 0 or _PORT.match(text, colon + 1):
                return None
            if text.find("@", end, end + LONGEST_ODD_PASSWORD) < 0:
                return None
            end = _end(_ADDRESS, text, end, end + LONGEST_ODD_PASSWORD)
            at = text.rfind("@", start, end)
            return (colon + 1, at, MASK) if at > colon + 1 else None
        if 0 <= colon < at:
            if colon + 1 < at:
                return colon + 1, at, MASK
            return (start, colon, MASK) if start < colon else None
        is_web = text[max(0, start - 8) : start - 3].lower().endswith(("http", "https"))
        return (start, at, MASK) if is_web and start < at else None

    def _named(self, found: re.Match[str]) -> Spot | None:
        start, quote = found.end(), found["quote"] or ""
        colon = found["sep"] == ":"
        has_blanks = colon and not WITH_BLANKS.isdisjoint(_joined(found["key"]).split("_"))
        if has_blanks and not _OPENED.match(self._text, start):
            is_digest = self._text[start : start + 6].lower() == "digest"
            line = (_LINE if is_digest else _LINE_TO_QUOTE).match(self._text, start)
            end = start + len(line[0].rstrip()) if line is not None else start
            return (start, end, MASK) if start < end else None
        return self._value(start, quote=quote if colon else "")

    def _value(self, start: int, *, quote: str = "") -> Spot | None:
        """What begins here, in quotes or without; `quote` comes around the mask of what has none."""
        text = self._text
        if (opened := _OPENED.match(text, start)) is not None:
            return self._quoted(opened)
        end = self._end_of_bare(start)
        if start == end or text[start:end] in NO_VALUES or self._is_the_next_key(text[start:end]):
            return None
        return start, end, f"{quote}{MASK}{quote}"

    def _is_the_next_key(self, bare: str) -> bool:
        """Whether there is no value here at all, as in `token= password: …`."""
        return bare.endswith((":", "=")) and self._redactor.hides(bare)

    def _quoted(self, opened: re.Match[str]) -> Spot | None:
        text, quote, start = self._text, opened["quote"], opened.end()
        if text.startswith(quote * 2, start) and not opened["slashes"]:
            start += 2
            end = text.find(quote * 3, start)
            end = len(text) if end < 0 else end
        else:
            end = self._closing(start, len(opened["slashes"]), quote)
            end = self._end_of_line(start) if end < 0 else end
        return (start, end, MASK) if start < end else None

    def _closing(self, start: int, slashes: int, quote: str) -> int:
        """Where the value ends that a quote after so many backslashes has opened; -1 where that is nowhere.

        Each time that a text is put into quotes, what closes a quote within it gets its backslashes doubled, and
        one more. Before a letter it closes nothing: the quote is part of a value that was put between quotes as
        it is.
        """
        text, place, last, most = self._text, start, -1, len(self._text)
        while (place := text.find(quote, place, most)) >= 0:
            before = place
            while before > start and text[before - 1] == "\\":
                before -= 1
            number = place - before
            doubled, rest = divmod(number - slashes, slashes + 1)
            if number < slashes or (rest == 0 and doubled % 2 == 0):
                if last < 0:
                    most = min(most, place + LONGEST_OVERHANG)
                last = place - min(number, slashes)
                if not _is_of_a_word(text[place + 1 : place + 2]):
                    break
            place += 1
        return last

    def _end_of_bare(self, start: int) -> int:
        """Where a value without quotes ends: at a blank, or where something else obviously begins."""
        text, place = self._text, start
        while place < len(text):
            if (plain := _PLAIN.match(text, place)) is not None:
                place = plain.end()
            elif text[place] in "([{":
                closed = self._closed(place)
                if closed < 0:
                    return self._end_of_line(place)
                place = closed
            elif (stop := _BREAK.match(text, place)) is not None:
                after = stop.end()
                if after == len(text) or text[after].isspace() or _NEXT_ITEM.search(stop[0]):
                    return place
                if _SEPARATES.search(stop[0]) and _NEXT_KEY.match(text, after):
                    return place
                place = after
            else:
                return place
        return place

    def _closed(self, start: int) -> int:
        """Behind the bracket that closes the one which is here; -1 where none does."""
        text, place, depth = self._text, start, 0
        while (found := _IN_BRACKETS.match(text, place)) is not None:
            place = found.end()
            if found.lastgroup == "open":
                depth += 1
            elif found.lastgroup == "close":
                depth -= 1
                if not depth:
                    break
        # What is in brackets may be read again, but a text that is made of them is not read again and again.
        self._in_brackets += place - start
        if self._in_brackets > 4 * len(text):
            return len(text)
        return -1 if depth else place

    def _end_of_line(self, start: int) -> int:
        return _end(_LINE, self._text, start, len(self._text))


def _is_of_a_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _end(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """How far a pattern goes that may match nothing at all, and so always matches."""
    found = pattern.match(text, start, end)
    assert found is not None, pattern
    return found.end()
