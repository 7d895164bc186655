"""A task's configuration as it was when a job was enqueued: written once, never changed, named by what it says."""

import hashlib
import json
from dataclasses import dataclass, fields
from typing import Any

SOLO = "process"
"""The isolation of a job that asks for an executor to itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """What of a task's options decides how its jobs run. Durations in seconds.

    `backoff`: seconds, seconds for each failure, None for the settings' own, or "function": then the task's own
    function is asked, as it is when the retry comes. `retry_on` and `discard_on` are names of exception types,
    module and class. `secrets` are names that the handler may ask for, never values.
    """

    task: str
    isolation: str = "thread"
    timeout_seconds: float | None = None
    backoff: float | tuple[float, ...] | str | None = None
    durable: str | None = None
    resource: str | None = None
    retry_on: tuple[str, ...] | None = None
    discard_on: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The one text of this configuration; what stands at its default is left out."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    @property
    def revision(self) -> int:
        """The number of this configuration, alike in every process: 63 bits of the SHA-256 of its text."""
        digest = hashlib.sha256(self.to_json().encode("utf-8", "backslashreplace")).digest()
        return int.from_bytes(digest[:8]) >> 1

    @classmethod
    def from_json(cls, text: str) -> "TaskConfig":
        """Read the text of `to_json`; what a newer version has added is left out."""
        given: dict[str, Any] = json.loads(text)
        known = {f.name for f in fields(cls)}
        read: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
        return cls(**{name: value for name, value in read.items() if name in known})
