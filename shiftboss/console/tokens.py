"""API tokens: made, listed, revoked, and the person behind one that is shown.

A token is shown once, when it is made. The record keeps its SHA-256 alone, and looks it up by that: what it holds
32 random bytes of cannot be found by trying, so no slow hash is needed.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.db.models.functions import Now

from shiftboss import conf
from shiftboss.acts import LARGEST_ID, Deed, perform
from shiftboss.permissions import PERMISSIONS, ROLES, Act, Person, require
from shiftboss.queue.authority import require_system
from shiftboss.queue.errors import ShiftbossError
from shiftboss.queue.models import Token

PREFIX = "sb_"
"""What tokens begin with, so that people and scanners of code know one where they see it."""

RANDOM_BYTES = 32
MAX_NAME_LENGTH = 100
LONGEST_DAYS = 3650


class TokenRefused(ShiftbossError):
    """A token cannot be made or revoked; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A token as people see it afterwards. `user`: the name of its user, None where there is none any more."""

    id: int
    name: str
    user: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    state: str
    """`valid`, `expired`, `revoked`, or `powerless` where its user is gone, inactive or no longer staff."""


def create(
    name: str, *, username: str, by: Person, expires_days: int | None = 90, reason: str = ""
) -> tuple[int, str]:
    """Make a token by which somebody acts as this user: its id, and the token itself, which nobody can read again.

    `expires_days` None: it never expires. Nobody makes one that may do what they may not do themselves. Raises
    TokenRefused, Lacking, ReasonNeeded.
    """
    require(PERMISSIONS[Act.CREATE_TOKEN], by=by)
    require_system(by.authority, Act.CREATE_TOKEN)
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise TokenRefused(f"a token's name has 1 to {MAX_NAME_LENGTH} printable characters")
    if expires_days is not None and not 1 <= expires_days <= LONGEST_DAYS:
        raise TokenRefused(f"a token expires after 1 to {LONGEST_DAYS} days")
    user = _named(username)
    for permission in sorted(ROLES["admin"]):
        if user.has_perm(permission):
            require(permission, by=by)
    shown = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    made: list[int] = []

    def do() -> Deed:
        row = _tokens().create(
            name=name,
            user_id=str(user.pk),
            digest=_digest(shown),
            expires_at=None if expires_days is None else Now() + timedelta(days=expires_days),
        )
        made.append(row.pk)
        return Deed(after={"token": str(row.pk)})

    asked = {"name": name, "user": username, "expires_days": expires_days}
    perform(Act.CREATE_TOKEN, do, by=by, reason=reason, asked=asked)
    return made[-1], shown


def revoke(token_id: int, *, by: Person, reason: str = "") -> None:
    """Make a token worthless from now on. Raises TokenRefused where there is none, or it is revoked already."""

    require_system(by.authority, Act.REVOKE_TOKEN)

    def do() -> Deed:
        rows = _tokens().filter(pk=token_id)
        if not rows.filter(revoked_at=None).update(revoked_at=Now()):
            raise TokenRefused(f"token {token_id} is revoked already" if rows else f"there is no token {token_id}")
        return Deed(after={"token": str(token_id)})

    if not 0 < token_id <= LARGEST_ID:
        raise TokenRefused(f"there is no token {token_id}")
    perform(Act.REVOKE_TOKEN, do, by=by, reason=reason, asked={"token": str(token_id)})


def listed() -> list[Listed]:
    """All tokens, the newest first; of none of them what was shown."""
    rows = list(_tokens().annotate(now=Now()).order_by("-pk"))
    users = {row.user_id: _with_id(row.user_id) for row in rows}
    return [
        Listed(
            id=row.pk,
            name=row.name,
            user=(user := users[row.user_id]) and user.get_username(),
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            state=_state(row, user),
        )
        for row in rows
    ]


def person_of(shown: str) -> Person | None:
    """Who asks with this token; None where it is not, or no longer, one."""
    if not shown.startswith(PREFIX):
        return None
    still = Q(expires_at=None) | Q(expires_at__gt=Now())
    row = _tokens().filter(still, digest=_digest(shown), revoked_at=None).first()
    user = row and _with_id(row.user_id)
    if row is None or user is None or not user.is_active:
        return None
    return Person.of_token(user, token_id=row.pk, token_name=row.name)


def _state(row: Any, user: Any) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is not None and row.expires_at <= row.now:
        return "expired"
    return "valid" if user and user.is_active and getattr(user, "is_staff", False) else "powerless"


def _digest(shown: str) -> str:
    return sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def _tokens() -> Any:
    return Token.objects.using(conf.get().database)


def _named(username: str) -> Any:
    users = get_user_model()
    try:
        user = users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist:
        raise TokenRefused(f"there is no user {username!r}") from None
    if not (user.is_active and getattr(user, "is_staff", False)):
        raise TokenRefused(f"{username!r} is not an active staff account, and only those may use the API")
    return user


def _with_id(user_id: str) -> Any:
    try:
        return get_user_model()._default_manager.filter(pk=user_id).first()
    except (ValueError, ValidationError):
        # Another model of users has other ids.
        return None
