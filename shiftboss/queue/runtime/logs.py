"""Log lines of the runtime's programs: an event name and fields, on standard error."""

import logging
import time

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class FieldFormatter(logging.Formatter):
    """`2026-01-31T12:00:00Z WARNING event.name key=value …`, in UTC."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line with the record's extra fields at its end."""
        fields = (f" {key}={value!r}" for key, value in record.__dict__.items() if key not in _PLAIN)
        return super().formatMessage(record) + "".join(fields)


def configure(level: int = logging.INFO) -> None:
    """Send all log lines of this process to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(FieldFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
