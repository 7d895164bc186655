"""What can go wrong, named for what happened. Every error carries the facts and the fix in its text."""


class ShiftbossError(Exception):
    """The root of all errors that Shiftboss raises on purpose."""


class NotAllowed(ShiftbossError):
    """The authority given does not permit this call."""


class NoSuchJob(ShiftbossError):
    """No job with this id is visible to the authority given."""


class InvalidJob(ShiftbossError, ValueError):
    """The job cannot be stored as it was asked for; the text names the field and the fix."""


class NotStorable(InvalidJob, TypeError):
    """A value cannot be held by JSON or by PostgreSQL's jsonb, or is over the configured size."""


class UnknownTask(ShiftbossError):
    """The name does not lead to a task."""


class LeaseLost(ShiftbossError):
    """The lease is no longer held: expired, superseded, or never this worker's. Nothing was changed."""


class StoreUnavailable(ShiftbossError):
    """PostgreSQL cannot be reached, or broke the connection, so that the outcome of a call is unknown."""


class SchemaTooOld(ShiftbossError):
    """The database lacks migrations that this version needs."""


class UnsupportedDatabase(ShiftbossError):
    """The database is not PostgreSQL 15 or newer."""
