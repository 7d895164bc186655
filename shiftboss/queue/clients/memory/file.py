"""The memory record as a JSON file."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.jobs import AttemptRow, EventRow
from shiftboss.queue.outcomes import Lost
from shiftboss.queue.states import State

FORMAT = "shiftboss.memory"
VERSION = 1

RESTORED = Lost(
    alone=True,
    suspect=False,
    code="process_ended",
    message="the process that ran it had ended when the store was loaded",
    evidence="{}",
)
"""What is known of a run that was under way when the store was saved."""

Row = TypeVar("Row", Job, AttemptRow, EventRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a file holds."""

    jobs: list[Job]
    attempts: list[AttemptRow]
    events: list[EventRow]
    paused: dict[str, tuple[datetime, str, str]]
    limits: dict[str, tuple[int, bool]]
    lines: dict[str, int]
    revisions: dict[int, str]
    last_id: int
    last_worker_id: int


def dump(saved: Saved) -> str:
    """The text of a file. Times are ISO 8601; what stands at its default is left out."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "last_id": saved.last_id,
        "last_worker_id": saved.last_worker_id,
        "paused": {queue: [at.isoformat(), by, why] for queue, (at, by, why) in saved.paused.items()},
        "limits": saved.limits,
        "lines": saved.lines,
        "revisions": saved.revisions,
        "jobs": list(map(_plain, saved.jobs)),
        "attempts": list(map(_plain, saved.attempts)),
        "events": list(map(_plain, saved.events)),
    }
    return json.dumps(content, ensure_ascii=False, indent=1)


def write(path: Path, text: str) -> None:
    """Put the text into the file's place, durably and in one step; only the owner may read it."""
    folder = path.absolute().parent
    fd, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read(path: Path) -> Saved:
    """What a file holds. Raises ValueError where it is none of ours."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} holds no saved store")
    if content["version"] != VERSION:
        raise ValueError(f"{path} is of version {content['version']}; this one reads version {VERSION}")
    return Saved(
        jobs=list(_read(Job, content["jobs"])),
        attempts=list(_read(AttemptRow, content["attempts"])),
        events=list(_read(EventRow, content["events"])),
        paused={q: (datetime.fromisoformat(at), by, why) for q, (at, by, why) in content["paused"].items()},
        limits={
            queue: (concurrency, sequential) for queue, (concurrency, sequential) in content["limits"].items()
        },
        lines=content["lines"],
        revisions={int(number): text for number, text in content["revisions"].items()},
        last_id=content["last_id"],
        last_worker_id=content["last_worker_id"],
    )


def _plain(row: Job | AttemptRow | EventRow) -> dict[str, Any]:
    values = {f.name: (getattr(row, f.name), f.default) for f in fields(row)}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, (value, default) in values.items()
        if value != default
    }


def _read(kind: type[Row], rows: list[Mapping[str, Any]]) -> Iterator[Row]:
    times = {f.name for f in fields(kind) if "datetime" in str(f.type)}
    for row in rows:
        given: dict[str, Any] = dict(row)
        for name in times & set(given):
            given[name] = None if given[name] is None else datetime.fromisoformat(given[name])
        if kind is Job:
            given |= {"state": State(given["state"])}
            given |= {name: tuple(given[name]) for name in ("watchers", "tags") if name in given}
        yield kind(**given)
