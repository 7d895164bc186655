"""The language of the search: what is read, how it is said again, and how mistakes are pointed at."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.console.query import (
    FIELDS,
    IS,
    MAX_CHARACTERS,
    Ago,
    At,
    Duration,
    Kind,
    Query,
    Term,
    Text,
    of,
    parse,
)
from shiftboss.queue.states import QuarantineReason, State

pytestmark = pytest.mark.requirement("C3")


def told(text: str) -> list[tuple[str, str | None]]:
    """Each mistake: the part of the text that it points at, and the nearest that is right."""
    found = parse(text).mistakes
    return [(text[one.at : one.at + one.length], one.nearest) for one in found]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  queue:mail   task:send ", "queue:mail task:send"),
        ('queue:"a b",c -task:*.cleanup', 'queue:"a b",c -task:*.cleanup'),
        ("state=running,retryable", "state:running,retryable"),
        ("4711", "id:4711"),
        ('"4711"', '"4711"'),
        ("id>5 id<=9", "id>5 id<=9"),
        ("run>1h30m run<1.5s", "run>90m run<1500ms"),
        ("enqueued>2h due<+1h", "enqueued>2h due<+1h"),
        ("finished>2030-05-01 started<2030-05-01T14:00:01+02:00", None),
        ("args.order.id=7 meta.a=x*", "args.order.id=7 meta.a=x*"),
        ("args.to:kim", "args.to=kim"),
        ('no "such host" a*b "a\\*b"', 'no "such host" a*b "a\\*b"'),
        ("100% _x \\ ( '", "100% _x \\ ( '"),
        ("QUEUE:mail queue:mail", "queue:mail"),
        ('-"not this"', '-"not this"'),
        ("key:a:b", "key:a:b"),
        ("9" * 30, f'"{"9" * 30}"'),
        ("", ""),
    ],
)
def test_a_query_says_itself_in_one_way(text: str, canonical: str | None) -> None:
    found = parse(text)
    assert found.mistakes == ()
    assert canonical is None or str(found) == canonical
    assert parse(str(found)).terms == found.terms


def test_a_star_is_a_wildcard_and_nothing_else_is() -> None:
    [plain, quoted, meant] = parse('task:a*b task:"a*b c" task:"a\\*b%_"').terms
    assert plain.values == (Text(("a", "b")),)
    assert quoted.values == (Text(("a", "b c")),)
    assert meant.values == (Text(("a*b%_",)),)


def test_times_without_a_zone_are_utc() -> None:
    [term] = parse("due>2030-05-01T14:00").terms
    assert term.values == (At(datetime(2030, 5, 1, 14, tzinfo=UTC)),)


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("quue:mail", [("quue:", "queue:")]),
        ("queue:mail state:runing", [("runing", "running")]),
        ("reason:poisonous", [("poisonous", "poison")]),
        ("http://x", [("http:", None)]),
        ("id:" + "9" * 30, [("9" * 30, None)]),
        ("id:x priority:1e9", [("x", None), ("1e9", None)]),
        ("run:5m", [("run:", None)]),
        ("run>soon", [("soon", None)]),
        ("enqueued>2030-13-01", [("2030-13-01", None)]),
        ("due>0001-01-01T00:00+14:00", [("0001-01-01T00:00+14:00", None)]),
        ("queue.x:mail", [("queue.x:", "queue:")]),
        ("args:x", [("args:", None)]),
        ("queue:", [("queue:", None)]),
        ("queue:,a", [(",", None)]),
        ("queue:a,", [(",", None)]),
        ('queue:"a b"c', [("c", None)]),
        ("id:1* run>5,6", [("1*", None), ("5", None), ("6", None)]),
        ("id>5,6", [("id>5,6", None)]),
        ('task:"open', [('"open', None)]),
        ('""', [('""', None)]),
        ("- x", [("-", None)]),
        ("a\x00b", [("\x00", None)]),
        ("a\ud800b", [("\ud800", None)]),
        (" ".join(f"w{n}" for n in range(60)), None),
        ("id:" + ",".join(map(str, range(101))), None),
    ],
)
def test_a_mistake_is_pointed_at(text: str, mistakes: list[tuple[str, str | None]] | None) -> None:
    found = told(text)
    assert found if mistakes is None else found == mistakes
    assert parse(text).terms == ()
    assert parse(text).text == text


def test_a_text_that_is_too_long_is_not_read_at_all() -> None:
    assert len(told("x " * 10_000)) == 1
    assert told("x" * (MAX_CHARACTERS + 1))[0][0] == "x"


def test_many_mistakes_are_told_as_a_few() -> None:
    assert len(told("a:b " * 100)) == 5


@given(st.text())
def test_whatever_is_typed_is_read_or_pointed_at(text: str) -> None:
    found = parse(text)
    assert found.text == text
    assert not (found.terms and found.mistakes)
    assert all(0 <= one.at < max(len(text), 1) and one.length > 0 for one in found.mistakes)
    if not found.mistakes:
        assert parse(str(found)).terms == found.terms


@given(st.text(alphabet='aA0 :,."*\\-<>=%_;\té\u202e\n', max_size=40))
def test_what_looks_like_a_query_says_itself_the_same_again(text: str) -> None:
    found = parse(text)
    assert str(parse(str(found))) == str(found)


pieces = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=12)
texts = st.lists(pieces, min_size=1, max_size=3).map(tuple).filter(lambda parts: parts != ("",)).map(Text)
milliseconds = st.integers(0, 10**12)
moments = st.datetimes(datetime(1900, 1, 2), datetime(8999, 12, 30), timezones=st.just(UTC))
VALUES = {
    Kind.TEXT: texts,
    Kind.JSON: texts | st.just(Text(("",))),
    Kind.STATE: st.sampled_from(State),
    Kind.REASON: st.sampled_from(QuarantineReason),
    Kind.ID: st.integers(0, 2**63 - 1),
    Kind.NUMBER: st.integers(-100, 100),
    Kind.DURATION: milliseconds.map(Duration),
    Kind.TIME: milliseconds.map(Ago) | st.integers(1, 10**12).map(lambda n: Ago(-n)) | moments.map(At),
}


@st.composite
def terms(draw: st.DrawFn) -> Term:
    """Any term that a query can have."""
    name = draw(st.sampled_from(["", *FIELDS]))
    negated = draw(st.booleans())
    if not name:
        return Term(name="", values=(draw(texts),), negated=negated)
    kind = FIELDS[name].kind
    compared = kind in (Kind.TIME, Kind.DURATION) or (kind in (Kind.ID, Kind.NUMBER) and draw(st.booleans()))
    op = draw(st.sampled_from([">", "<", ">=", "<="])) if compared else IS
    values = draw(st.lists(VALUES[kind], min_size=1, max_size=1 if compared else 3, unique=True))
    path = draw(st.lists(st.from_regex(r"[\w-]+", fullmatch=True), min_size=1, max_size=3))
    return Term(
        name=name, op=op, values=tuple(values), path=tuple(path) if kind is Kind.JSON else (), negated=negated
    )


@given(st.lists(terms(), max_size=5))
def test_a_query_that_says_itself_is_read_as_the_same(asked: list[Term]) -> None:
    query = of(asked)
    assert parse(str(query)) == Query(str(query), query.terms)
