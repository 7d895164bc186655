"""People who ask for pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.console import scenes

looked_at_each_time = pytest.fixture(autouse=True)(scenes.looked_at_each_time)


@pytest.fixture
def operator(db: None) -> User:
    """Somebody on call."""
    return scenes.person("kim", role="operator")


@pytest.fixture
def browser(operator: User) -> Client:
    """The operator's browser, logged in."""
    client = Client()
    client.force_login(operator)
    return client
