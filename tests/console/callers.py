"""Programs that call the API, and what they are answered."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client

from shiftboss.console import roles, tokens
from shiftboss.permissions import Person

BASE = "/api/v1/"


def user(name: str, role: str | None = "operator", **how: Any) -> User:
    """Somebody of the staff with a role."""
    made = User.objects.create_user(name, password="correct horse", **{"is_staff": True, **how})
    if role is not None:
        roles.make_groups()
        made.groups.add(Group.objects.get(name=roles.group_name(role)))
    return made


def token_of(user: User, name: str = "deploy") -> str:
    """A new token of theirs."""
    _, shown = tokens.create(name, username=user.get_username(), by=Person.of_shell())
    return shown


class Caller:
    """A program with a token, or a browser with a session, or a stranger with neither."""

    def __init__(self, *, token: str | None = None, session: User | None = None, csrf: bool = False) -> None:
        self._client = Client(enforce_csrf_checks=csrf, raise_request_exception=True)
        if session is not None:
            self._client.force_login(session)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, path: str, **query: Any) -> HttpResponse:
        """The answer to a question."""
        return self._client.get(BASE + path, query, headers=self._headers)  # type: ignore[return-value]

    def post(
        self,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> HttpResponse:
        """The answer to an act. `body`: a value, or bytes as they are."""
        more = {**self._headers, **headers} | ({} if key is None else {"Idempotency-Key": key})
        if body is None:
            return self._client.generic("POST", BASE + path, headers=more)  # type: ignore[return-value]
        return self._client.post(  # type: ignore[return-value]
            BASE + path, body, content_type=content_type, headers=more
        )


def told(response: HttpResponse, status: int = 200) -> Any:
    """What an answer of this status says."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"].startswith("application/json")
    assert response.headers["Cache-Control"] == "no-store"
    return response.json()  # type: ignore[attr-defined]


def problem(response: HttpResponse, status: int, code: str) -> Any:
    """What an error of this status and code says."""
    body = told(response, status)
    assert body["code"] == code
    assert body["message"]
    return body
