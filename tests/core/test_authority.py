"""In whose name a call is made."""

import pytest

from shiftboss import Owner, System
from shiftboss.queue.authority import MAX_OWNER_LENGTH, owner_of, require_system
from shiftboss.queue.errors import NotAllowed

pytestmark = pytest.mark.requirement("N4")


@pytest.mark.parametrize("id", ["", " ", "\t\n", "a\x00b", "a\nb", "\x7f", "\ud800", "x" * (MAX_OWNER_LENGTH + 1)])
def test_an_owner_that_no_record_could_hold_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="Owner"):
        Owner(id)


@pytest.mark.parametrize("id", [None, 7, b"kim", ["kim"]])
def test_an_owner_is_named_by_text(id: object) -> None:
    with pytest.raises(TypeError, match="str"):
        Owner(id)  # type: ignore[arg-type]


@pytest.mark.parametrize("id", ["user_123", "名前", "a b", "x" * MAX_OWNER_LENGTH, "'; drop table", "👩‍🔧"])
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
