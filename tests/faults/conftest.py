"""Tests with real workers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shiftboss import conf
from tests.runtime.fixtures import house

__all__ = ["house"]

Configure = Callable[..., None]


@pytest.fixture
def configure(settings: Any) -> Iterator[Configure]:
    """Sets options of SHIFTBOSS for what the test itself enqueues."""
    settings.SHIFTBOSS = getattr(settings, "SHIFTBOSS", {})

    def configure(**options: Any) -> None:
        settings.SHIFTBOSS = {**settings.SHIFTBOSS, **options}
        conf.get.cache_clear()

    yield configure
    del settings.SHIFTBOSS
    conf.get.cache_clear()
