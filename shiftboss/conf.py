"""`settings.SHIFTBOSS`, read once into a frozen, typed `Config`.

Keys are written in capitals in the settings (`SHIFTBOSS = {"LEASE_SECONDS": 30}`); each field of
`Config` is one of them. An unknown key or a bad value raises `ConfigError`, which names the key and the fix.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any


class ConfigError(ValueError):
    """A setting is unknown or has a value that cannot work; the text names it and the fix."""


def setting(default: Any, help: str) -> Any:
    """A field of a configuration with its default and the sentence that the documentation prints."""
    if callable(default):
        return field(default_factory=default, metadata={"help": help})
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One kind of worker: which queues it serves and how many handlers it runs at once."""

    name: str
    queues: tuple[str, ...] = setting(("default",), "queues that the workers of the pool serve")
    workers: int = setting(1, "worker programs of this pool that the supervisor keeps alive")
    max_workers: int | None = setting(
        None, "worker programs that the pool may be scaled to while it runs (default: no more than `workers`)"
    )
    min_workers: int | None = setting(
        None, "worker programs that the pool shrinks to [by itself](operating.md#scaling) (default: `workers`)"
    )
    scale_wait_seconds: float | None = setting(
        None,
        "how long a due job may wait before the pool grows by itself, up to `max_workers`; it shrinks again where "
        "none waits (default: it does neither)",
    )
    processes: int = setting(1, "executor processes of one worker")
    threads: int = setting(8, "threads of one executor; slots of a worker = processes × threads")
    isolated: int = setting(
        2, "jobs with isolation `process` that a worker runs at once, each in an executor to itself"
    )
    max_jobs: int | None = setting(
        None, "jobs after which an executor makes room for a fresh one, once what runs in it has ended"
    )
    max_rss_mb: int | None = setting(
        None, "memory of an executor above which it makes room for a fresh one after a job"
    )
    max_worker_rss_mb: int | None = setting(
        None, "memory of a worker's programs together above which it drains and ends, and is started anew"
    )
    environment: Mapping[str, str] = setting(
        dict,
        "what the workers have in their environment beside what they inherit; it is written into the supervisor's "
        "configuration, so [secrets](operating.md#secrets) do not belong here",
    )
    user: str | None = setting(
        None, "user of the system that the workers run as; the supervisor has to be started by root"
    )
    memory_limit_mb: int | None = setting(
        None,
        "largest memory of a worker: of its programs together under systemd, of [each of "
        "them](operating.md#limits-of-memory) under supervisord",
    )
    trust: str | None = setting(
        None, "label of how far the pool is trusted, such as `internal`; its programs have it as `SHIFTBOSS_TRUST`"
    )

    @property
    def slots(self) -> int:
        """Handlers that one worker runs at the same time."""
        return self.processes * self.threads

    @property
    def most_workers(self) -> int:
        """Worker programs that the supervisor knows; those beyond `workers` run once somebody starts them."""
        return self.workers if self.max_workers is None else self.max_workers

    @property
    def least_workers(self) -> int:
        """Worker programs that the pool shrinks to by itself."""
        return self.workers if self.min_workers is None else self.min_workers


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """What holds for the jobs of one queue, before what their tasks say."""

    concurrency: int | None = setting(
        None, "jobs of the queue that run at once over all workers; people may change it"
    )
    sequential: bool = setting(False, "one job at a time in strict order; a retry holds the line")
    target_wait_seconds: float | None = setting(
        None, "how long a due job of the queue should wait at most; the console shows how many did"
    )
    max_attempts: int | None = setting(None, "failures after which a job is quarantined")
    timeout_seconds: float | None = setting(None, "how long one attempt may run")
    backoff_seconds: float | None = setting(None, "what a retry waits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, with their defaults. Durations are in seconds, sizes in bytes."""

    database: str = setting("default", "alias of the database that holds the record")
    pools: Mapping[str, Pool] = setting(
        lambda: {"default": Pool(name="default")},
        "worker pools by name: `queues`, `workers`, `max_workers`, `min_workers`, `scale_wait_seconds`, "
        "`processes`, `threads`, `isolated`, `max_jobs`, `max_rss_mb`, `max_worker_rss_mb`, `environment`, "
        "`user`, `memory_limit_mb`, `trust`",
    )
    queues: Mapping[str, QueueOptions] = setting(
        dict,
        "options of queues by name: `concurrency`, `sequential`, `target_wait_seconds`, and in the place of what "
        "a task says `max_attempts`, `timeout_seconds`, `backoff_seconds`",
    )
    lease_seconds: float = setting(30.0, "how long a claim or heartbeat holds a job")
    heartbeat_seconds: float = setting(5.0, "time between heartbeats; at most a third of the lease")
    poll_seconds: float = setting(1.0, "time between looks for work when no notification comes")
    drain_seconds: float = setting(20.0, "how long a stopping worker waits for running jobs")
    grace_seconds: float = setting(
        5.0, "how long a handler may go on after it was asked to end, before its process is ended"
    )
    max_attempts: int = setting(5, "failures after which a job is quarantined; a task may say otherwise")
    max_losses: int = setting(3, "losses (lease expired, process died) after which a job is quarantined")
    backoff_seconds: float = setting(5.0, "base of the exponential, jittered backoff after a failure")
    backoff_cap_seconds: float = setting(3600.0, "longest backoff between two attempts")
    max_args_bytes: int = setting(1024 * 1024, "largest size of a job's arguments as JSON")
    max_result_bytes: int = setting(1024 * 1024, "largest size of a job's result as JSON")
    unknown_task_seconds: float = setting(
        600.0, "how long no live worker may know a waiting job's task before it is quarantined"
    )
    retention_days: float = setting(90.0, "how long the history is kept; older days are dropped whole")
    quarantine_retention_days: float = setting(
        90.0, "how long a job stays quarantined before the system discards it"
    )
    partition_days_ahead: int = setting(14, "day partitions that the maintainer keeps ready; at most 366")
    crash_loop_ends: int = setting(
        3, "unexpected ends of a program within `CRASH_LOOP_SECONDS` after which it is held back for a while"
    )
    crash_loop_seconds: float = setting(60.0, "within which time these ends are a loop of crashes")
    stage_seconds: float = setting(0.5, "time between two passes that make due jobs available")
    reap_seconds: float = setting(1.0, "time between two passes over expired leases")
    queue_authorizer: str | None = setting(
        None, "dotted path of `f(authority, queue, task) -> bool`: who may enqueue where; one that raises refuses"
    )
    watch_authorizer: str | None = setting(
        None,
        "dotted path of `f(authority, job_id, key) -> bool`: who becomes a watcher by asking for a key that a job "
        "holds already; nobody where it is not set",
    )
    staff_scope: str | None = setting(
        None,
        "dotted path of `f(user) -> System() | Scoped(queues=…, owners=…)`: which jobs a user of the staff sees "
        "and acts on, on pages, in the API and with `--as`; one that raises refuses",
    )
    secret_provider: str | None = setting(
        None,
        "dotted path of `f(name, *, job_id, task)`: the value, text or bytes, of a secret that the task lists; it "
        "is asked in the executor, whenever a handler wants one",
    )
    redact_keys: tuple[str, ...] = setting(
        (),
        "patterns of keys behind which values are masked before anything is written or told, beyond [those that "
        'always are](security.md#redaction): `("iban", "tax_*")`',
    )
    redactor: str | None = setting(
        None,
        "dotted path of `f(text) -> text`: what may be seen of a message, a traceback, a log line, or a text in "
        "an event; it is asked in the executor after the patterns, and one that raises hides the whole text",
    )
    observers: tuple[str, ...] = setting((), "dotted paths of observers of what workers do")
    observer_backlog: int = setting(
        1000, "observations that may wait for the observers; more are dropped and counted"
    )


MAX_QUEUE_LENGTH = 100
MAX_PARTITION_DAYS_AHEAD = 366


def check_queue(name: Any) -> str:
    """The queue name itself; ConfigError when it cannot be one."""
    if not isinstance(name, str) or not name or len(name) > MAX_QUEUE_LENGTH or not name.isprintable():
        raise ConfigError(f"a queue name is 1 to {MAX_QUEUE_LENGTH} printable characters, not {str(name)[:120]!r}")
    return name


MAX_PATTERN_CHARACTERS = 100
MAX_STARS = 2


def _patterns(given: Any) -> tuple[str, ...]:
    where = 'SHIFTBOSS["REDACT_KEYS"]'
    if isinstance(given, str) or not isinstance(given, list | tuple):
        raise ConfigError(f"{where} must be a list of texts such as ('iban', 'tax_*'), not {str(given)[:120]!r}")
    for pattern in given:
        if not isinstance(pattern, str) or not 1 <= len(pattern) <= MAX_PATTERN_CHARACTERS:
            what = f"1 to {MAX_PATTERN_CHARACTERS} characters"
            raise ConfigError(f"{where}: a pattern is a text of {what}, not {str(pattern)[:120]!r}")
        if not any(sign.isalnum() for sign in pattern):
            raise ConfigError(f"{where}: {pattern!r} would hide everything: name the key, or a part of its name")
        if len(pattern.replace("**", "*").split("*")) > MAX_STARS + 1:
            raise ConfigError(f"{where}: {pattern!r} has more than {MAX_STARS} stars: write two patterns")
    return tuple(given)


SMALLEST_MEMORY_MB = 128
"""Less than a worker has once Django is loaded."""
LARGEST_MEMORY_MB = 16 * 1024 * 1024

_WHERE_GIVEN = (
    ("max_workers", 1, 1000),
    ("max_jobs", 1, 10**9),
    ("max_rss_mb", SMALLEST_MEMORY_MB, LARGEST_MEMORY_MB),
    ("max_worker_rss_mb", SMALLEST_MEMORY_MB, LARGEST_MEMORY_MB),
    ("memory_limit_mb", SMALLEST_MEMORY_MB, LARGEST_MEMORY_MB),
)
"""Settings of a pool that are whole numbers within these bounds, or None."""


def _pool(name: str, given: Any) -> Pool:
    where = f'SHIFTBOSS["POOLS"][{name!r}]'
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a dict, not {type(given).__name__}")
    known = {f.name for f in fields(Pool)} - {"name"}
    if unknown := set(given) - known:
        raise ConfigError(f"{where} has unknown keys {sorted(map(str, unknown))}; known are {sorted(known)}")
    queues = given.get("queues", ("default",))
    if not isinstance(queues, list | tuple | set | frozenset) or not queues:
        raise ConfigError(f'{where}["queues"] must be a non-empty list of queue names')
    try:
        pool = Pool(**{**given, "name": name, "queues": tuple(check_queue(q) for q in queues)})
    except ConfigError as problem:
        raise ConfigError(f'{where}["queues"]: {problem}') from None
    limits = (("workers", 0, 1000), ("processes", 1, 256), ("threads", 1, 1024), ("isolated", 0, 256))
    for key, low, high in limits:
        value = getattr(pool, key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(f"{where}[{key!r}] must be a whole number from {low} to {high}, not {value!r}")
    for key, low, high in _WHERE_GIVEN:
        value = getattr(pool, key)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high
        ):
            said = f"a whole number from {low} to {high}, or None"
            raise ConfigError(f"{where}[{key!r}] must be {said}, not {str(value)[:120]!r}")
    most = pool.max_workers
    if most is not None and most < pool.workers:
        raise ConfigError(
            f"{where}['max_workers'] ({most}) must be at least its 'workers' ({pool.workers}): raise the one or "
            "lower the other"
        )
    _check_scaling(where, pool)
    _check_surroundings(where, pool)
    return pool


def _check_scaling(where: str, pool: Pool) -> None:
    """Refuse bounds between which no pool could grow or shrink by itself."""
    least, wait = pool.min_workers, pool.scale_wait_seconds
    if least is not None and (isinstance(least, bool) or not isinstance(least, int) or not 0 <= least <= 1000):
        raise ConfigError(f"{where}['min_workers'] must be a whole number from 0 to 1000, or None, not {least!r}")
    if least is not None and least > pool.workers:
        raise ConfigError(
            f"{where}['min_workers'] ({least}) must be at most its 'workers' ({pool.workers}): lower the one or "
            "raise the other"
        )
    if wait is None:
        return
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 < wait < 2**31:
        raise ConfigError(f"{where}['scale_wait_seconds'] must be a number above 0, or None, not {wait!r}")
    if pool.least_workers == pool.most_workers:
        raise ConfigError(
            f"{where}['scale_wait_seconds'] is given, and the pool can neither grow nor shrink: give it "
            "'max_workers', or 'min_workers'"
        )


def _check_surroundings(where: str, pool: Pool) -> None:
    """Refuse what no supervisor could give to the programs of a pool."""
    given: Any = pool.environment
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}['environment'] must be a dict of texts by name, not {type(given).__name__}")
    for name, text in given.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            what = "a variable is named with letters, digits and _"
            raise ConfigError(f"{where}['environment']: {what}, not {str(name)[:120]!r}")
        if not isinstance(text, str) or "\0" in text:
            # What is wrong may be a secret: it is not shown.
            what = "holds a NUL" if isinstance(text, str) else f"is a {type(text).__name__}"
            raise ConfigError(f"{where}['environment'][{name!r}] {what}: give a text such as '4'")
    user, trust = pool.user, pool.trust
    if user is not None and not (
        isinstance(user, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", user)
    ):
        raise ConfigError(f"{where}['user'] must be the name of a user of the system, not {str(user)[:120]!r}")
    if trust is not None and not (isinstance(trust, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", trust)):
        said = "1 to 40 letters, digits and _ . -"
        raise ConfigError(f"{where}['trust'] must be a label of {said}, not {str(trust)[:120]!r}")


def _queue(name: str, given: Any) -> QueueOptions:
    where = f'SHIFTBOSS["QUEUES"][{name!r}]'
    check_queue(name)
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a dict, not {type(given).__name__}")
    known = {f.name for f in fields(QueueOptions)}
    if unknown := set(given) - known:
        raise ConfigError(f"{where} has unknown keys {sorted(map(str, unknown))}; known are {sorted(known)}")
    for key, high, whole in (
        ("concurrency", 10_000, True),
        ("max_attempts", 2**31 - 1, True),
        ("target_wait_seconds", 2**31 - 1, False),
        ("timeout_seconds", 2**31 - 1, False),
        ("backoff_seconds", 2**31 - 1, False),
    ):
        value, kinds = given.get(key), (int,) if whole else (int, float)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= high
        ):
            kind = "whole number" if whole else "number"
            raise ConfigError(f"{where}[{key!r}] must be a {kind} above 0 and at most {high}, not {value!r}")
    if not isinstance(given.get("sequential", False), bool):
        raise ConfigError(f"{where}['sequential'] must be True or False, not {given['sequential']!r}")
    if given.get("sequential") and given.get("concurrency") not in (None, 1):
        raise ConfigError(f"{where} is sequential, so its concurrency is 1: leave `concurrency` out")
    return QueueOptions(**given)


def read(given: Any) -> Config:
    """Check `settings.SHIFTBOSS` and freeze it. Raises ConfigError."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"SHIFTBOSS must be a dict, not {type(given).__name__}")
    known = {f.name.upper(): f for f in fields(Config)}
    if unknown := set(given) - set(known):
        raise ConfigError(f"SHIFTBOSS has unknown keys {sorted(map(str, unknown))}; known are {sorted(known)}")
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key == "POOLS":
            if not isinstance(value, Mapping) or not value:
                raise ConfigError('SHIFTBOSS["POOLS"] must be a non-empty dict of pools by name')
            values["pools"] = {str(name): _pool(str(name), pool) for name, pool in value.items()}
        elif key == "QUEUES":
            if not isinstance(value, Mapping):
                raise ConfigError('SHIFTBOSS["QUEUES"] must be a dict of options by queue name')
            values["queues"] = {str(name): _queue(str(name), options) for name, options in value.items()}
        elif key == "REDACT_KEYS":
            values["redact_keys"] = _patterns(value)
        else:
            values[key.lower()] = _typed(key, value, known[key].default)
    config = Config(**values)
    if config.partition_days_ahead > MAX_PARTITION_DAYS_AHEAD:
        raise ConfigError(
            f"PARTITION_DAYS_AHEAD ({config.partition_days_ahead}) must be at most {MAX_PARTITION_DAYS_AHEAD}: "
            "each day is three tables, and every plan and lock has to count them"
        )
    if config.lease_seconds < 3 * config.heartbeat_seconds:
        raise ConfigError(
            f"LEASE_SECONDS ({config.lease_seconds:g}) must be at least three heartbeats: raise it to "
            f"{3 * config.heartbeat_seconds:g} or lower HEARTBEAT_SECONDS to {config.lease_seconds / 3:g}"
        )
    return config


def _typed(key: str, value: Any, default: Any) -> Any:
    assert default is not MISSING
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) and word for word in value):
            raise ConfigError(f"SHIFTBOSS[{key!r}] must be a list of dotted paths, not {value!r}")
        return tuple(value)
    if default is None:
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError(f"SHIFTBOSS[{key!r}] must be a dotted path or None, not {value!r}")
        return value
    if isinstance(default, str):
        if not isinstance(value, str) or not value:
            raise ConfigError(f"SHIFTBOSS[{key!r}] must be a non-empty string, not {value!r}")
        return value
    kinds = (int,) if isinstance(default, int) else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 2**31:
        kind = "whole number" if isinstance(default, int) else "number"
        raise ConfigError(f"SHIFTBOSS[{key!r}] must be a {kind} above 0, not {value!r}")
    return type(default)(value)


@cache
def get() -> Config:
    """The configuration of this process, read from Django's settings once. Raises ConfigError."""
    from django.conf import settings

    return read(getattr(settings, "SHIFTBOSS", {}))
