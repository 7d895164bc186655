"""What stands behind a name that says it is secret is masked, and what else there is stays."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftboss.conf import ConfigError, read
from shiftboss.queue import payload
from shiftboss.queue.handlers import redactor_of
from shiftboss.queue.redaction import LONGEST_TEXT, Redactor
from shiftboss.queue.secrets import MASK

pytestmark = pytest.mark.requirement("L24")

PLAIN = Redactor()
NAMES = [
    *("password", "PASSWORD", "db_password", "passwordConfirm", "DB.PASSWD", "user-pass", "pwd", "passphrase"),
    *("secret", "client_secret", "SECRET_KEY", "token", "accessToken", "csrftoken", "X-Auth-Token", "token2"),
    *("api_key", "apiKey", "X-Api-Key", "apikey", "stripe.api_key", "AWSAccessKey", "AccountKey", "private_key"),
    *(
        "Authorization",
        "HTTP_AUTHORIZATION",
        "credentials",
        "cookie",
        "sessionid",
        "sessionId",
        "jwt",
        "pin",
        "cvv",
    ),
    *("signature", "sig", "card_number", "x" * 300 + "_password", "password_" + "x" * 300),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_tells_that_its_value_is_secret(name: str) -> None:
    assert PLAIN.hides(name)
    assert PLAIN.data({name: "v4lue"}) == {name: MASK}
    assert "v4lue" not in PLAIN.text(f"{name}=v4lue")


@pytest.mark.parametrize(
    "name",
    ["key", "keys", "author", "tokens", "max_tokens", "tokenizer", "monkey", "classname", "shipping", "id", ""],
)
def test_a_name_that_only_looks_like_it_hides_nothing(name: str) -> None:
    assert PLAIN.data({name: "v4lue"}) == {name: "v4lue"}
    assert PLAIN.text(f"{name}=v4lue") == f"{name}=v4lue"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("login(password=hunter2, user=bob)", "login(password=¤, user=bob)"),
        ("?token=hunter2&user=1", "?token=¤&user=1"),
        ("host=h password='hunter 2' user=y", "host=h password='¤' user=y"),
        ('{"password": "hun\\"ter2", "n": 1}', '{"password": "¤", "n": 1}'),
        ('{"pin": 1234, "n": 2}', '{"pin": "¤", "n": 2}'),
        ('{"pin":1234,"n":2}', '{"pin":"¤","n":2}'),
        ('{"tried": "{\\"password\\": \\"hunter2\\"}", "n": 2}', '{"tried": "{\\"password\\": \\"¤\\"}", "n": 2}'),
        ("{'token': b'hunter2', 'n': 1}", "{'token': b'¤', 'n': 1}"),
        ("{'credentials': {'user': 'bob', 'p': ['hunter2']}, 'n': 1}", "{'credentials': '¤', 'n': 1}"),
        ("Connection(user='bob', password=Wrapped('hunter 2'), n=1)", "Connection(user='bob', password=¤, n=1)"),
        ("[('password', 'hunter 2'), ('n', 1)]", "[('password', '¤'), ('n', 1)]"),
        ("password='hunter's 2'", "password='¤'"),
        ('token="""hunter\n"2""" n', 'token="""¤""" n'),
        ("token: 'hunter2", "token: '¤"),
        ("token: [hunter 2\nnext", "token: ¤\nnext"),
        ("password: None, token=null", "password: None, token=null"),
        ("password= token: hunter2", "password= token: ¤"),
        ("Authorization: Bearer hunter2\nHost: h", "Authorization: ¤\nHost: h"),
        ("curl -H 'Authorization: Basic hunter2' h", "curl -H 'Authorization: ¤' h"),
        ('Authorization: Digest username="u", response="hunter2"\nn', "Authorization: ¤\nn"),
        ("{'authorization': 'Basic hunter2', 'Host': 'h'}", "{'authorization': '¤', 'Host': 'h'}"),
        ("Cookie: a=hunter; b=2", "Cookie: ¤"),
        ("sent bearer hunter2. to", "sent bearer ¤ to"),
        ("Incorrect API key provided: hunter2 (see docs)", "Incorrect API key provided: ¤ (see docs)"),
        ("the token was refused: see docs", "the token was refused: see docs"),
        ("run --password hunter2 --user bob", "run --password ¤ --user bob"),
        ("['run', '--token', 'hunter2', 'bob']", "['run', '--token', '¤', 'bob']"),
        ("environ['DB_PASSWORD'] = 'hunter2'", "environ['DB_PASSWORD'] = '¤'"),
        ("user[password]=hunter2", "user[password]=¤"),
        ("Key (email, token)=(a@b.c, hunter2) already exists.", "Key (email, token)=(¤) already exists."),
        ("postgres://bob:hunter2@h:5432/db", "postgres://bob:¤@h:5432/db"),
        ("postgres://bob:hun/ter2@h/db", "postgres://bob:¤@h/db"),
        ("redis://:hunter2@h", "redis://:¤@h"),
        ("amqp://a:hunter2@h,amqp://b:hunter2@i", "amqp://a:¤@h,amqp://b:¤@i"),
        ("https://hunter2@h/x https://hunter2:@h", "https://¤@h/x https://¤:@h"),
        ("ssh://git@h https://h:8080/a?b=c@d http://h/x", "ssh://git@h https://h:8080/a?b=c@d http://h/x"),
        ("AccountName=n;AccountKey=hunter2==;Suffix=s", "AccountName=n;AccountKey=¤;Suffix=s"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\nn",
            "-----BEGIN RSA PRIVATE KEY-----¤-----END RSA PRIVATE KEY-----\nn",
        ),
    ],
)
def test_a_value_is_masked_wherever_it_stands_and_the_rest_stays(text: str, seen: str) -> None:
    assert PLAIN.text(text) == seen.replace("¤", MASK)
    assert PLAIN.text(PLAIN.text(text)) == PLAIN.text(text)


values = st.text(max_size=20).map(lambda text: f"h7{text}q9Z")
bare = st.text(st.characters(exclude_characters="()[]{},;&\"'\\", exclude_categories=["C", "Z"]), max_size=20).map(
    lambda text: f"h7{text}q9Z"
)
names = st.sampled_from(["password", "api_key", "X-Auth-Token", "clientSecret"])
noise = st.lists(
    st.sampled_from(
        ["a", " ", "=", ": ", '"', "'", "\\", "\n", "{", "(", "]", ")", ",", "&", "token", "://", "@", "--x "]
    )
).map("".join)
planted = st.one_of(
    st.builds("{}={}".format, names, bare),
    st.builds("{}: {}".format, names, bare),
    st.builds("https://user:{}@host/".format, bare.filter(lambda text: not set("<>@/?#:") & set(text))),
    st.builds(lambda name, value: f"{name}={value!r}", names, values),
    st.builds(lambda name, value: json.dumps({"n": 1, name: value}), names, values),
    st.builds(lambda name, value: json.dumps(json.dumps({name: value})), names, values),
    st.builds(lambda name, value: json.dumps({"a": json.dumps(json.dumps({name: [value]}))}), names, values),
    st.builds(lambda name, value: repr({"n": 1, name: {"at": (value, 1)}}), names, values),
)


@settings(max_examples=60, deadline=None)
@given(noise, planted, noise)
def test_no_value_behind_such_a_name_is_left_in_a_text(before: str, text: str, after: str) -> None:
    seen = PLAIN.text(f"{before}\n{text}\n{after}")
    assert "h7" not in seen
    assert "q9Z" not in seen


@settings(max_examples=60, deadline=None)
@given(planted)
def test_what_was_masked_stays_as_it_is(text: str) -> None:
    assert PLAIN.text(PLAIN.text(text)) == PLAIN.text(text)


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
data = st.recursive(
    leaves, lambda held: st.lists(held) | st.dictionaries(st.text(max_size=10), held), max_leaves=8
)


def shape(value: Any) -> Any:
    """What is left of data without its texts and numbers."""
    match value:
        case list():
            return [shape(item) for item in value]
        case dict():
            return [shape(item) for item in value.values()]
        case None | bool():
            return value
    return "leaf"


@settings(max_examples=60, deadline=None)
@given(data, names, data, values)
def test_data_keeps_its_shape_and_nothing_behind_such_a_name(
    around: Any, name: str, held: Any, value: str
) -> None:
    given_ = {"around": around, "rows": [{name: {"held": held, "value": [value, 77001234]}, "n": 1}]}
    seen = PLAIN.data(given_)
    text = json.dumps(seen)
    assert "q9Z" not in text
    assert "77001234" not in text
    assert shape(seen) == shape(given_)
    assert PLAIN.data(seen) == seen
    told = json.loads(PLAIN.json_text(json.dumps(given_)))
    assert told == json.loads(text)


def test_texts_and_names_within_data_are_read_too_and_values_keep_their_types() -> None:
    stored = {"line": "password=hunter2", "at://u:hunter2@h": 1, "$dict": {"$token": {"$uuid": "hunter2"}}, "n": 7}
    seen = PLAIN.data(stored)
    assert seen == {"line": f"password={MASK}", f"at://u:{MASK}@h": 1, "$dict": {"$token": MASK}, "n": 7}
    assert payload.decode(PLAIN.json_text('{"pin":{"$decimal":"12"},"n":{"$decimal":"12"}}'), typed=False) == {
        "pin": MASK,
        "n": "12",
    }
    assert PLAIN.data({"password": None, "token": True, "pin": ""}) == {"password": None, "token": True, "pin": ""}


def test_whatever_comes_an_answer_comes() -> None:
    deep: Any = "hunter2"
    for _ in range(20_000):
        deep = [deep]
    seen = PLAIN.data({"token": deep})["token"]
    while isinstance(seen, list):
        [seen] = seen
    assert seen == MASK
    loop: list[Any] = []
    loop.append(loop)
    assert PLAIN.data(loop).startswith(MASK)
    assert json.loads(PLAIN.json_text("[" * 100_000 + "]" * 100_000)) is not None
    assert PLAIN.text("\ud800 password=\ud800\x00") == f"\ud800 password={MASK}"


@pytest.mark.parametrize(
    "part",
    [
        *(
            "a",
            "a ",
            "token:[",
            "token:[\n",
            "token='a'b ",
            "://",
            '://a:b/@"',
            "token=1 ",
            "a=1 ",
            ")",
            "(",
            "bearer ",
        ),
        *(
            'token="\\"',
            "-----BEGIN PRIVATE KEY-----",
            "--a ",
            ";a",
            "('a',",
            "x y z: ",
            'token="\n',
            "Cookie: ",
            "\\",
        ),
        *("token=(')", 'token=["\\"\\"\'', "token='token: (", "Authorization: 'x ", "aA", "(token)=("),
    ],
)
def test_a_text_that_is_made_to_be_hard_is_read_all_the_same(part: str) -> None:
    text = "token=hunter2 " + part * (100_000 // len(part)) + "\n\"'token=hunter2"
    assert "hunter2" not in PLAIN.text(text)


def test_of_a_text_that_is_too_long_the_middle_is_left_out() -> None:
    seen = PLAIN.text("a" * LONGEST_TEXT + "\n" + "token=hunter2 " * LONGEST_TEXT + "\nend")
    assert len(seen) <= LONGEST_TEXT + 100
    assert "hunter2" not in seen
    assert "characters left out" in seen
    assert seen.endswith("\nend")


def without_bob(text: str) -> str:
    """As a project's own function, and like one that now and then does not return a text."""
    if "raise" in text:
        raise LookupError(text)
    return text.replace("bob", "…") if "none" not in text else None  # type: ignore[return-value]


def test_the_project_has_a_say_and_one_that_raises_hides_the_whole(caplog: pytest.LogCaptureFixture) -> None:
    redactor = redactor_of(
        read({"REDACT_KEYS": ["iban", "tax*", "apiSeed"], "REDACTOR": f"{__name__}.without_bob"})
    )
    assert redactor.text("iban=DE1 tax_no=2 API_SEED=3 bob") == f"iban={MASK} tax_no={MASK} API_SEED={MASK} …"
    assert redactor.data({"who": ["bob"], "taxNo": 1}) == {"who": ["…"], "taxNo": MASK}
    assert redactor.text("raise bob").startswith(
        f"{MASK} (hidden as a whole: the project's redactor raised LookupError"
    )
    assert redactor.text("none bob").startswith(
        f"{MASK} (hidden as a whole: the project's redactor gave a NoneType"
    )
    assert [record.getMessage() for record in caplog.records] == ["redactor.failed"]
    assert "bob" not in str(caplog.records[0].__dict__)
    assert redactor.text("bob") == "…"


def test_a_function_that_cannot_be_imported_hides_the_whole(caplog: pytest.LogCaptureFixture) -> None:
    assert "bob" not in redactor_of(read({"REDACTOR": "nowhere.at_all"})).text("bob")
    assert caplog.records[0].levelno == logging.ERROR


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ("iban", "list of texts"),
        (None, "list of texts"),
        ([7], "a pattern is a text of"),
        ([""], "a pattern is a text of"),
        (["x" * 101], "a pattern is a text of"),
        (["*"], "would hide everything"),
        (["_-"], "would hide everything"),
        (["*a*b*"], "more than 2 stars"),
    ],
)
def test_a_pattern_that_cannot_work_names_its_setting_and_the_fix(given_: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=f"REDACT_KEYS.*{why}"):
        read({"REDACT_KEYS": given_})
