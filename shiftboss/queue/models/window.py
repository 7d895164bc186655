"""A model that can only read: the store is the only door for writing."""

from typing import Any, NoReturn

from django.db import models


class ReadOnly(Exception):
    """A model of the record was asked to write; use the store's verbs."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ReadOnly("the record is written by its verbs only (shiftboss.queue.store), never through models")


class WindowQuerySet(models.QuerySet[Any]):
    """A query set that can only read."""

    create = bulk_create = update = bulk_update = delete = get_or_create = update_or_create = _refuse


class Window(models.Model):
    """A model that can only read."""

    objects = WindowQuerySet.as_manager()

    class Meta:
        abstract = True

    save = save_base = delete = _refuse
