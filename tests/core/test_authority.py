"""In whose name a call is made."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import RequestFactory
from hypothesis import example, given
from hypothesis import strategies as st

from shiftboss import Owner, System, owner_of_request, owner_of_user
from shiftboss.queue.authority import MAX_OWNER_LENGTH, Authority, owner_of, require_system
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.keys import MAX_KEY_LENGTH, Scope, ScopedKey, read_key, scoped_key

pytestmark = pytest.mark.requirement("N4")


@pytest.mark.parametrize("id", ["", " ", "\t\n", "a\x00b", "a\nb", "\x7f", "\ud800", "x" * (MAX_OWNER_LENGTH + 1)])
def test_an_owner_that_no_record_could_hold_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="Owner"):
        Owner(id)


def request_of(user: Any) -> Any:
    """A request as Django's middleware hands it on."""
    request = RequestFactory().get("/")
    request.user = user
    return request


def test_a_requests_user_is_an_owner_by_primary_key() -> None:
    assert owner_of_request(request_of(User(pk=7, username="kim"))) == Owner("user_7")
    assert owner_of_user(User(pk=7)) == Owner("user_7")
    unusual = SimpleNamespace(is_authenticated=True, pk=UUID(int=1))
    assert owner_of_user(unusual) == Owner("user_00000000-0000-0000-0000-000000000001")


@pytest.mark.parametrize(
    ("user", "told"),
    [
        (AnonymousUser(), "nobody is logged in: an anonymous user owns no jobs"),
        (User(username="kim"), "the user is not saved yet"),
        (None, "the request has no user: add .*AuthenticationMiddleware"),
        (SimpleNamespace(is_authenticated=True, pk="a::b"), "the user's primary key cannot name an owner: .*'::'"),
        (SimpleNamespace(is_authenticated=True, pk="x" * MAX_OWNER_LENGTH), "cannot name an owner"),
    ],
)
def test_who_is_nobody_in_particular_owns_nothing(user: Any, told: str) -> None:
    with pytest.raises(NotAllowed, match=told):
        owner_of_request(request_of(user))


def test_a_request_without_a_user_is_told_what_is_missing() -> None:
    with pytest.raises(NotAllowed, match="AuthenticationMiddleware"):
        owner_of_request(RequestFactory().get("/"))


@pytest.mark.requirement("N5")
@pytest.mark.parametrize("id", ["a::b", "::", "::a", "a:", ":", "a:::b"])
def test_an_owner_that_holds_the_separator_or_ends_in_part_of_it_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="'::'"):
        Owner(id)


@pytest.mark.parametrize("id", [None, 7, b"kim", ["kim"]])
def test_an_owner_is_named_by_text(id: object) -> None:
    with pytest.raises(TypeError, match="str"):
        Owner(id)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "id", ["user_123", "名前", "a b", "x" * MAX_OWNER_LENGTH, "'; drop table", "👩‍🔧", ":a", "tenant:5"]
)
def test_any_other_text_names_an_owner(id: str) -> None:
    assert owner_of(Owner(id)) == id


def test_the_system_has_no_owner() -> None:
    assert owner_of(System()) is None


@pytest.mark.parametrize("authority", [None, "system", "", 0, object(), Owner, System])
def test_nothing_else_is_an_authority(authority: object) -> None:
    with pytest.raises(TypeError, match="authority must be"):
        owner_of(authority)  # type: ignore[arg-type]


def test_what_is_the_systems_is_refused_to_owners_by_the_verbs_name() -> None:
    require_system(System(), "claim")
    with pytest.raises(NotAllowed, match="claim is for System"):
        require_system(Owner("kim"), "claim")


def test_authorities_are_values() -> None:
    assert Owner("kim") == Owner("kim") != Owner("lee")
    assert {Owner("kim"), System()} == {System(), Owner("kim")}
    with pytest.raises(AttributeError):
        Owner("kim").id = "lee"  # type: ignore[misc]


# Keys

readable = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[*map(chr, range(32)), "\x7f"]),
    min_size=1,
    max_size=40,
) | st.text("0123456789:ownersytmglba", min_size=1, max_size=12)
owners = readable.filter(lambda id: id.strip() and "::" not in id and not id.endswith(":")).map(Owner)
scoped = st.tuples(readable, owners | st.just(System()), st.sampled_from(Scope))


def meant(key: str, authority: Authority, scope: Scope) -> ScopedKey:
    """What a key with its scope is."""
    return ScopedKey(scope, None if scope is Scope.GLOBAL else owner_of(authority), key)


@pytest.mark.requirement("N5")
@given(asked=scoped)
def test_what_a_key_was_made_of_is_read_from_it(asked: tuple[str, Authority, Scope]) -> None:
    key, authority, scope = asked
    assert read_key(scoped_key(key, authority=authority, scope=scope)) == meant(*asked)


@pytest.mark.requirement("N5")
@given(one=scoped, other=scoped)
@example(one=("b", Owner("1:a"), Scope.OWNER), other=("a::b", Owner("1"), Scope.OWNER))
@example(one=(":b", Owner("1"), Scope.OWNER), other=("b", Owner("1"), Scope.OWNER))
@example(one=("owner:a::b", System(), Scope.OWNER), other=("b", Owner("a"), Scope.OWNER))
@example(one=("x", System(), Scope.OWNER), other=("x", System(), Scope.GLOBAL))
@example(one=("x", Owner("a"), Scope.OWNER), other=("x", Owner("b"), Scope.OWNER))
def test_two_keys_are_one_only_where_scope_owner_and_name_are(
    one: tuple[str, Authority, Scope], other: tuple[str, Authority, Scope]
) -> None:
    same = scoped_key(one[0], authority=one[1], scope=one[2]) == scoped_key(
        other[0], authority=other[1], scope=other[2]
    )
    assert same == (meant(*one) == meant(*other))


NO_KEYS = [
    "",
    "k",
    "global",
    "global:",
    "system:",
    "nobody:k",
    "owner:kim",
    "owner:kim:k",
    "owner:kim::",
    "owner:::k",
    "owner::k",
    "owner::::k",
]


@pytest.mark.requirement("N5")
@pytest.mark.parametrize("text", NO_KEYS, ids=lambda text: text[:20])
def test_a_text_that_is_no_key_is_not_read_as_one(text: str) -> None:
    with pytest.raises(ValueError, match="no key of a job"):
        read_key(text)


@pytest.mark.requirement("N5")
@pytest.mark.parametrize(
    "text",
    [
        "owner:   ::k",
        "global:a\nb",
        f"system:{'x' * (MAX_KEY_LENGTH + 1)}",
    ],
    ids=["an empty owner", "a control character", "too long"],
)
def test_a_text_that_looks_like_a_key_and_cannot_have_been_made_as_one_is_not_read_as_one(text: str) -> None:
    with pytest.raises(ValueError, match="no key of a job"):
        read_key(text)


@pytest.mark.requirement("N5")
@pytest.mark.parametrize(
    "key", ["", "x" * (MAX_KEY_LENGTH + 1), "a\x00b", "a\nb", "\x7f", "\ud800", None, 7, b"kim", ["k"]]
)
def test_a_key_that_no_record_could_hold_is_refused(key: object) -> None:
    with pytest.raises(ValueError, match="key"):
        scoped_key(key, authority=System())  # type: ignore[arg-type]
