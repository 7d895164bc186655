"""Log lines of the runtime's programs: an event name and fields, on standard error; and what is hidden in those of
handlers.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shiftboss.queue.redaction import Redactor, walked
from shiftboss.queue.runtime.secrets import hidden_in_all
from shiftboss.queue.secrets import MASK

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


def hide(redactor: Callable[[], Redactor]) -> None:
    """Let all handlers of log lines that there are write only what may be seen."""
    hiding = Hiding(redactor)
    for handler in set(_handlers()):
        handler.addFilter(hiding)


def _handlers() -> Iterator[logging.Handler]:
    if logging.lastResort is not None:
        yield logging.lastResort
    yield from logging.root.handlers
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            yield from logger.handlers


class Hiding(logging.Filter):
    """Lets every record pass, without what its reader is not to see: in its message, its fields and its traceback.

    Where nothing is hidden, the record stays as it was. An exception in whose traceback something is hidden is
    left as text alone.
    """

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True."""
        try:
            self._hide(record)
        except Exception as error:
            for name in set(record.__dict__) - _PLAIN:
                setattr(record, name, MASK)
            record.msg, record.args = f"{MASK} (this line cannot be looked through, {type(error).__name__})", None
            record.exc_info = record.exc_text = record.stack_info = None
        return True

    def _hide(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, Mapping):
            record.args = self._data(record.args)
        if isinstance(record.msg, Mapping):
            record.msg = self._data(record.msg)
        else:
            self._hide_in_message(record)
        if record.exc_info:
            shown = _FORMATTER.formatException(record.exc_info)
            if (seen := self._text(shown)) != shown:
                record.exc_info, record.exc_text = None, seen
        if record.exc_text:
            record.exc_text = self._text(record.exc_text)
        if record.stack_info:
            record.stack_info = self._text(record.stack_info)
        for name in set(record.__dict__) - _PLAIN:
            setattr(record, name, self._field(name, getattr(record, name)))

    def _hide_in_message(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:
            # `logging` would print the arguments as they are, and where the line stands in the code.
            record.msg, record.args = self._text(f"{record.msg} ({record.args!r} does not fit it)"), None
            return
        if (seen := self._text(message)) != message:
            record.msg, record.args = seen, None

    def _field(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return self._data({name: value})[name]
        if isinstance(value, str | Mapping | list | tuple):
            [seen] = self._data({name: value}).values()
            return seen if seen != (list(value) if isinstance(value, tuple) else value) else value
        shown = repr(value)
        seen = MASK if self._redactor().hides(name) else self._text(shown)
        return value if seen == shown else seen

    def _text(self, text: str) -> str:
        return self._redactor().text(hidden_in_all(text))

    def _data(self, value: Any) -> Any:
        return walked(value, leaf=self._leaf, hides=self._redactor().hides)

    def _leaf(self, value: Any) -> Any:
        return self._text(value) if isinstance(value, str) else value


_FORMATTER = logging.Formatter()
