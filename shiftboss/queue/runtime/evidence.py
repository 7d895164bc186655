"""An exception as text that can be stored: bounded, without what PostgreSQL refuses, and without raising."""

import hashlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

MAX_MESSAGE = 1000
MAX_TRACEBACK = 32_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is kept of an exception. `fingerprint` is alike for failures of one kind."""

    type: str
    message: str
    fingerprint: str
    traceback: str


def _as_it_is(text: str) -> str:
    return text


def describe(error: BaseException, *, skip_frames: int = 0, hidden: Callable[[str], str] = _as_it_is) -> Evidence:
    """The evidence of an exception; `skip_frames` outermost frames (the executor's own) are left out.

    `hidden` takes out of a text what is to be seen by nobody, before anything of it is cut or written in another
    way: what is left of a value would not be found any more.
    """
    trace = error.__traceback__
    for _ in range(skip_frames):
        trace = trace.tb_next if trace is not None else None
    kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return Evidence(
        type=storable(kind, 300),
        message=storable(hidden(_message(error)), MAX_MESSAGE),
        fingerprint=_fingerprint(kind, trace),
        traceback=storable(hidden(_trace(error, trace)), MAX_TRACEBACK),
    )


def storable(text: str, longest: int) -> str:
    """Text that PostgreSQL takes: no NUL, no lone surrogate, at most `longest` characters (the middle goes)."""
    text = text.replace("\x00", "\\x00").encode(errors="backslashreplace").decode()
    if len(text) > longest:
        half = longest // 2 - 20
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    return text


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except (Exception, SystemExit) as second:
        return f"<str() of the exception raised {type(second).__name__}>"


def _trace(error: BaseException, trace: TracebackType | None) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, trace))
    except (Exception, SystemExit) as second:
        return f"<the traceback cannot be formatted: {type(second).__name__}>"


def _fingerprint(kind: str, trace: TracebackType | None) -> str:
    # Files and functions without line numbers and values: the same after an edit elsewhere in the file.
    frames = [kind]
    while trace is not None and len(frames) < 200:
        code = trace.tb_frame.f_code
        frames.append(f"{trace.tb_frame.f_globals.get('__name__', '?')}:{code.co_qualname}")
        trace = trace.tb_next
    return hashlib.sha256("\n".join(frames).encode(errors="backslashreplace")).hexdigest()[:16]
