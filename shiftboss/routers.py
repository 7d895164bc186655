"""A database router for a record that is not in the default database."""

from typing import Any

from shiftboss import conf


class RecordRouter:
    """Shiftboss's tables are in `SHIFTBOSS["DATABASE"]` and nowhere else; other apps' are not its business."""

    def db_for_read(self, model: type, **_: Any) -> str | None:
        """The record's database for a model of Shiftboss."""
        return conf.get().database if _is_ours(model) else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        """Shiftboss's migrations run on the record's database only."""
        return db == conf.get().database if app_label == "shiftboss" else None


def _is_ours(model: Any) -> bool:
    return bool(model._meta.app_label == "shiftboss")
