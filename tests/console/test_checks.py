"""What `manage.py check` says of a console that is not whole."""

from typing import Any

import pytest
from django.test import modify_settings, override_settings

from shiftboss import checks


@pytest.mark.requirement("C7", "C3")
def test_a_console_without_its_parts_is_warned_of_and_one_that_is_not_mounted_is_not(settings: Any) -> None:
    assert checks.the_console_is_whole() == []
    settings.MIDDLEWARE = []
    assert [message.id for message in checks.the_console_is_whole()] == ["shiftboss.W003"]
    with modify_settings(INSTALLED_APPS={"remove": "django_htmx"}):
        assert [message.id for message in checks.the_console_is_whole()] == ["shiftboss.W002", "shiftboss.W003"]
    with override_settings(ROOT_URLCONF="tests.console.no_urls"):
        assert checks.the_console_is_whole() == []


@pytest.mark.requirement("C7")
def test_a_project_without_any_urls_is_fine(settings: Any) -> None:
    del settings.ROOT_URLCONF
    assert checks.the_console_is_whole() == []
