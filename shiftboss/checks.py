"""System checks: a bad setting is told at start, with its name and the fix. Ids are shiftboss.E001…"""

from typing import Any

from django.core import checks

from shiftboss import conf


@checks.register("shiftboss")
def settings_are_sound(**_: Any) -> list[checks.CheckMessage]:
    """E001: `settings.SHIFTBOSS` has an unknown key or an impossible value."""
    try:
        conf.get()
    except conf.ConfigError as problem:
        return [checks.Error(str(problem), hint="See docs/settings.md for every key.", id="shiftboss.E001")]
    return []


@checks.register("shiftboss")
def database_is_postgresql(**_: Any) -> list[checks.CheckMessage]:
    """E002: the database alias is unknown or not PostgreSQL."""
    from django.db import connections

    try:
        alias = conf.get().database
    except conf.ConfigError:
        return []
    if alias not in connections:
        text = f'SHIFTBOSS["DATABASE"] names {alias!r}, which is not in DATABASES'
    elif connections[alias].vendor != "postgresql":
        text = f"DATABASES[{alias!r}] is {connections[alias].vendor}; Shiftboss needs PostgreSQL 15 or newer"
    else:
        return []
    hint = "Set SHIFTBOSS['DATABASE'] to the alias of a PostgreSQL database."
    return [checks.Error(text, hint=hint, id="shiftboss.E002")]
