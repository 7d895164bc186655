"""Every call that reads or acts takes an authority, and none gets what is another owner's.

The calls are found by walking the modules, so that a new one cannot be forgotten: a verb of the store without
`authority`, or with a parameter that is not listed here, fails until it has its place.
"""

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from importlib import import_module
from itertools import product
from pkgutil import iter_modules
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.db import connection

from shiftboss import Owner, Scoped, System
from shiftboss.queue import store
from shiftboss.queue.authority import owner_of
from shiftboss.queue.clients.memory import MemoryStore
from shiftboss.queue.contract import Lease, Note, NoteKind, Registration, WorkerStatus
from shiftboss.queue.errors import NoSuchBackfill, NoSuchJob, NotAllowed
from shiftboss.queue.jobs import Limits, NewJob
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Quarantined, Released, Snoozed
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store.audit import Entry
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.store.commands import Order
from shiftboss.queue.store.holds import Looping, Poison
from shiftboss.queue.store.hosts import Agent
from shiftboss.queue.store.many import Held
from shiftboss.queue.store.operate import Matching
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.rolls import Move, Step
from shiftboss.queue.store.samples import Part
from shiftboss.queue.store.search import Search
from shiftboss.queue.store.statement import Atomic, Verb, run

pytestmark = [pytest.mark.requirement("N4"), pytest.mark.django_db]

VICTIM = Owner("victim")
FOREIGN = Owner("foreign")
FOREIGNERS = {
    "owner": FOREIGN,
    "scope of a queue": Scoped(queues=["foreign"]),
    "scope of an owner": Scoped(owners=["foreign"]),
    "scope of both": Scoped(queues=["victims-queue"], owners=["foreign"]),
    "scope of the other two": Scoped(queues=["foreign"], owners=["victim"]),
    "scope of nothing": Scoped(queues=[]),
}
"""Who has nothing to do with the victim's jobs."""
LOOPING = Looping(host="web-1", program="web", pool=None, step=1, seconds=9.0, evidence={}, after=0)
NEITHER = (None, "", "victim", "system", True, 1, Owner, System, ("victim",), {"id": "victim"})
"""What stands in for no authority."""

OF_NOBODY = {
    "enqueue.note_revisions": "a part of verbs that have one",
    "lease.reject": "a part of verbs that have one",
    "partitions.with_todays_partitions": "goes around a verb, which has its own",
    "queues.adopt": "a part of verbs that have one",
    "queues.settle": "a part of verbs that have one",
    "schema.check_schema": "reads which migrations were applied",
}
"""Verbs of the store that need no authority."""

MACHINERY = {
    "audit.seen_by": "parameters of statements",
    "lease.ids_and_fences": "a plain function",
    "schema.judge": "a plain function",
    "partitions.met_missing_day": "a plain function",
    "statement.numbers": "writes an array",
    "statement.run": "runs a verb",
    "statement.arun": "runs a verb",
    "statement.sql_text": "reads a file of the package",
}
"""Public functions of the store that are no verbs."""

MEMORY_OF_NOBODY = {
    "client": "a worker's way to it, by who holds the store itself",
    "wakeups": "hints without a word of any job, by who holds the store itself",
    "load": "the whole record, of a file that its reader can read anyway",
    "save": "the whole record, by who holds the store itself",
}
"""Public methods of the memory store that need no authority."""

DONE = Done('"victim"', 1)
OUTCOMES = {
    "complete": DONE,
    "fail": Failed("handler_raised", "ValueError", "no", "1b0c", "Traceback…", 60.0, 1),
    "release": Released("shutdown"),
    "snooze": Snoozed(90.0, 1),
    "discard": Discarded("withdrawn", 1),
    "quarantine": Quarantined(QuarantineReason.INVALID_ARGUMENTS, "they do not fit"),
    "reap_own": Lost(alone=True, suspect=True, code="executor_died", message="killed", evidence="{}"),
    "report": DONE,
    "note": Note(NoteKind.PROGRESS, '{"percent": 1}'),
}
AGAIN = Limits(failures=5, losses=3, by_task={})
REGISTRATION = Registration(
    pool="default",
    host="web-1",
    pid=4711,
    code_version=None,
    queues=("victims-queue",),
    processes=1,
    threads=1,
    lease_seconds=30.0,
    heartbeat_seconds=5.0,
)


STEP = Step(
    roll_id=1,
    number=1,
    program="worker-default-1",
    pool="default",
    state="waiting",
    code_wanted=None,
    seconds=0.0,
    launcher=None,
    launcher_after=None,
    life=None,
    ending=None,
    code=None,
    signal=None,
    log=None,
    worker_id=None,
    code_version=None,
    beats=False,
    claims=False,
    waits=False,
    fallen=None,
)


class Function(NamedTuple):
    """A call under test. `perform` carries it out on its store."""

    name: str
    function: Callable[..., Any]
    in_memory: bool


def verbs_of_the_store() -> dict[str, Callable[..., Any]]:
    """All public functions, by module and name."""
    found = {}
    for one in iter_modules(store.__path__):
        module = import_module(f"{store.__name__}.{one.name}")
        for name, value in vars(module).items():
            of_here = getattr(value, "__module__", None) == module.__name__
            if of_here and not name.startswith("_") and not inspect.isclass(value) and callable(value):
                found[f"{one.name}.{name}"] = value
    return found


def methods_of_memory() -> dict[str, Callable[..., Any]]:
    """All public methods of the memory store."""
    public = [name for name in vars(MemoryStore) if not name.startswith("_")]
    return {name: value for name in public if callable(value := getattr(MemoryStore, name))}


def takes_authority(function: Callable[..., Any]) -> bool:
    """By keyword, and without a default."""
    parameter = inspect.signature(function).parameters.get("authority")
    return parameter is not None and (parameter.kind, parameter.default) == (
        parameter.KEYWORD_ONLY,
        parameter.empty,
    )


VERBS = verbs_of_the_store()
MEMORY = methods_of_memory()
FUNCTIONS = [Function(name, verb, False) for name, verb in sorted(VERBS.items()) if takes_authority(verb)]
FUNCTIONS += [Function(name, verb, True) for name, verb in sorted(MEMORY.items()) if takes_authority(verb)]
EACH = pytest.mark.parametrize(
    "call", FUNCTIONS, ids=lambda call: ("memory." if call.in_memory else "") + call.name
)


class Scene:
    """A record with the victim's jobs in many states, in PostgreSQL or in memory."""

    def __init__(self, *, in_memory: bool) -> None:
        self.memory = MemoryStore() if in_memory else None
        self.worker = self.do("register", REGISTRATION, authority=System(), tasks=["shop.victim"])
        self.held = self._running("claimed").job_id
        self.finished = self._ended("completed", "complete")
        self.failed = self._ended("failed", "fail")
        self.quarantined = self._ended("quarantined", "quarantine")
        self.running = self._running("running")
        self.waiting = self._enqueued("waiting")
        self.backfill = 0 if in_memory else self.do("backfill.begin", _backfill("victim's"), authority=VICTIM)
        self.ids = [self.waiting, self.running.job_id, self.held, self.failed, self.quarantined, self.finished]

    def do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Carry out a verb."""
        if self.memory is None:
            [verb] = [verb for path, verb in VERBS.items() if path in (name, f"lease.{name}", f"workers.{name}")]
            return run(verb(*args, **kwargs))
        if name in OUTCOMES:
            name = "report"
        return getattr(self.memory, name.rpartition(".")[2])(*args, **kwargs)

    def _enqueued(self, key: str) -> int:
        new = NewJob(
            queue="victims-queue",
            task="shop.victim",
            args='{"args": ["victim"], "kwargs": {}}',
            failure_limit=5,
            loss_limit=3,
            key=f"victim-{key}",
            tags=("victim",),
        )
        return int(self.do("enqueue.enqueue", new, authority=VICTIM).id)

    def _running(self, key: str) -> Lease:
        self._enqueued(key)
        [job] = self.do(
            "claim",
            authority=System(),
            worker_id=self.worker,
            queue="victims-queue",
            tasks=["shop.victim"],
            limit=1,
            lease_seconds=30.0,
        )
        lease: Lease = job.lease
        return lease

    def _ended(self, key: str, verb: str) -> int:
        lease = self._running(key)
        self.do(verb, [(lease, OUTCOMES[verb])], authority=System(), worker_id=self.worker)
        return lease.job_id

    def values(self, call: Function) -> dict[str, Any]:
        """An argument for each parameter, that means the victim's jobs where it can mean any."""
        verb = call.name.rpartition(".")[2]
        known = {
            "actor_id": None,
            "actor_kind": "user",
            "after_id": None,
            "args": '{"args": [], "kwargs": {}}',
            "back_seconds": 60.0,
            "backfill_id": self.backfill,
            "before": date(2020, 1, 1),
            "before_id": None,
            "by": "somebody",
            "cause": "user",
            "days_ahead": 1,
            "done": DONE,
            "due_at": datetime.now(UTC),
            "entry": _entry(),
            "given": Limit(2),
            "held_seconds": None,
            "items": [("victim", "{}")] if verb == "add" else [(self.running, OUTCOMES.get(verb))],
            "job": self.do("read.job", authority=System(), job_id=self.waiting)
            if call.name == "obstacles.of"
            else _of_foreign("one"),
            # Of one job no list is cut short, and nothing is read.
            "job_id": None if call.name == "audit.reach" else self.waiting,
            "agent": Agent(name="web-1", hostname="web-1", pid=1, home="/", code_version=None, lease_seconds=9.0),
            "code_wanted": None,
            "command_id": 1,
            "count": 1,
            "of": STEP,
            "to": Move(to="draining"),
            "roll_id": 1,
            "why": "jobs wait",
            "failed": False,
            "fence": 1,
            "order": Order(host="web-1", verb="start", program="web"),
            "progress": "it begins",
            "result": {},
            "hold_id": 1,
            "looping": LOOPING,
            "poison": Poison(job_id=self.held, fence=1, worker_id=self.worker, message="it kills"),
            "how": "release",
            "process_id": 1,
            "returning_in": {self.held: 0.0},
            "message": "it died",
            "host": "web-1",
            "job_ids": self.ids,
            "jobs": [_of_foreign("two")],
            "lease": self.running,
            "lease_seconds": 30.0,
            "leases": [self.running],
            "limit": 5,
            "lives": [Life(program="web", launcher=1, started=1.0)],
            "name": "web-1",
            "pool": "default",
            "program": "web",
            "programs": [],
            "trouble": None,
            "limits": {"victims-queue": Limit(2)} if verb == "apply_settings" else AGAIN,
            "minutes": 15,
            "new": _backfill("mine"),
            "numbers": [1],
            "operation": uuid4(),
            "part": Part.COUNTS,
            "parts": [Part.COUNTS],
            "per_worker": 5,
            "priority": 1,
            "queue": "victims-queue",
            "queues": ["victims-queue"],
            "reason": "no reason",
            "registration": REGISTRATION,
            "request_id": "1",
            "retention_days": 90.0,
            "revisions": [1],
            "seconds": 60.0,
            "since": datetime.now(UTC),
            "standings": [],
            "state": State.AVAILABLE,
            "status": WorkerStatus(state="running", in_use=0, idle=True, tasks=(), lag_ms=0, losses=0),
            "tasks": ["shop.victim"],
            "waiter": 1,
            "wanted": Search(),
            "which": Held(reason=QuarantineReason.INVALID_ARGUMENTS)
            if call.name.startswith("many.")
            else Matching(states=frozenset({State.AVAILABLE})),
            "word": "drain",
            "worker_id": self.worker,
            "workers": [self.worker],
        }
        wanted = [
            name
            for name, parameter in inspect.signature(call.function).parameters.items()
            if name not in ("self", "authority") and (parameter.default is parameter.empty or name in known)
        ]
        assert [name for name in wanted if name not in known] == [], "name a value for these parameters above"
        return {name: known[name] for name in wanted}

    def whole(self) -> Any:
        """All that the record holds, but for what `FOREIGN` enqueues for itself and notes for its own waiting."""
        if self.memory is not None:
            looks = (self.memory.attempts, self.memory.events)
            return (
                [
                    self.memory.job(authority=System(), job_id=job_id)
                    and [look(authority=System(), job_id=job_id) for look in looks]
                    for job_id in self.ids
                ],
                self.memory._paused,
                len(self.memory._workers),
            )
        with connection.cursor() as cursor:
            cursor.execute(
                "select relname from pg_class where relname like 'shiftboss\\_%' and relkind in ('r', 'p')"
                " and not relispartition and relname not in ('shiftboss_waiter', 'shiftboss_revision')"
            )
            tables = sorted(name for (name,) in cursor.fetchall())
            found = {}
            for table in tables:
                cursor.execute(f"select row_to_json(t)::text from {table} t order by 1")
                rows = [json.loads(row) for (row,) in cursor.fetchall()]
                found[table] = [row for row in rows if row.get("owner") != FOREIGN.id]
            return found


def _entry() -> Entry:
    return Entry(
        actor_kind="user",
        actor_id="1",
        actor_name="Kim",
        via="api",
        act="cancel",
        reason="no reason",
        operation=uuid4(),
    )


def _backfill(name: str) -> NewBackfill:
    return NewBackfill(
        name=name, task="shop.mine", queue="default", priority=0, concurrency=1, failure_limit=1, loss_limit=1
    )


def _of_foreign(key: str) -> NewJob:
    return NewJob(
        queue="default",
        task="shop.mine",
        args='{"args": [], "kwargs": {}}',
        failure_limit=1,
        loss_limit=1,
        key=key,
    )


@pytest.fixture
def scene(call: Function) -> Scene:
    """The record that the call is made on."""
    return Scene(in_memory=call.in_memory)


def perform(call: Function, scene: Scene, **changed: Any) -> Any:
    """Make the call, to its end."""
    given = {**scene.values(call), **changed}
    if call.in_memory:
        return call.function(scene.memory, **given)
    return run(call.function(**given))


def start(call: Function, scene: Scene, **given: Any) -> None:
    """Make the call, up to the first statement where there are any."""
    if call.in_memory:
        call.function(scene.memory, **given)
    else:
        begin(call.function(**given))


def begin(verb: Verb[Any]) -> None:
    """Drive a verb until it wants a statement run, which is not done."""
    wish = next(verb)
    if isinstance(wish, Atomic):
        begin(wish.verb)
    verb.close()


def test_every_verb_of_the_store_takes_an_authority_by_keyword_and_without_a_default() -> None:
    without = {name for name, verb in VERBS.items() if not takes_authority(verb)}
    assert without == set(OF_NOBODY) | set(MACHINERY)
    assert {name for name in without if inspect.isgeneratorfunction(VERBS[name])} == set(OF_NOBODY)


def test_every_method_of_the_memory_store_takes_an_authority_by_keyword_and_without_a_default() -> None:
    assert {name for name, verb in MEMORY.items() if not takes_authority(verb)} == set(MEMORY_OF_NOBODY)


def empty_variants(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments, and once more with nothing in the lists: nothing to do is no reason to let pass."""
    yield given
    if lists := {name: [] for name, value in given.items() if isinstance(value, list)}:
        yield {**given, **lists}


@EACH
def test_a_call_without_an_authority_is_refused_before_anything_is_done(call: Function, scene: Scene) -> None:
    with pytest.raises(TypeError, match="authority"):
        perform(call, scene)
    for given in empty_variants(scene.values(call)):
        for nobody in NEITHER:
            with pytest.raises(TypeError, match=r"must be Owner|for System"):
                start(call, scene, **given, authority=nobody)
    # So that the refusals are about the authority, and not about the other arguments.
    start(call, scene, **scene.values(call), authority=System())


@EACH
def test_foreigners_see_nothing_and_change_nothing(call: Function, scene: Scene) -> None:
    before = scene.whole()
    takes_a_job = "job_id" in inspect.signature(call.function).parameters and call.name != "audit.reach"
    ids = scene.ids if takes_a_job else [0]
    for job_id, (who, foreigner) in product(ids, FOREIGNERS.items()):
        changed = {"job_id": job_id} if job_id else {}
        if call.name == "obstacles.of" and isinstance(foreigner, Scoped):
            continue  # it is asked for a job that one has been shown
        try:
            answer = perform(call, scene, authority=foreigner, **changed)
        except (NotAllowed, NoSuchJob, NoSuchBackfill):
            continue
        assert who == "owner" or not call.in_memory
        assert "victim" not in repr(answer)
        for unchanged in getattr(answer, "unchanged", ()):
            assert (unchanged.state, unchanged.holder) == (None, None)
        assert getattr(answer, "changed", ()) == ()
    assert scene.whole() == before


@pytest.mark.parametrize("nobody", ["", " ", "\t", "a::b", "a:", "\x00", "\ud800", "x" * 201])
def test_an_owner_that_names_nobody_cannot_be_made(nobody: str) -> None:
    with pytest.raises(ValueError, match="Owner"):
        Owner(nobody)


@pytest.mark.parametrize("nobody", NEITHER)
def test_only_an_owner_and_the_system_are_authorities(nobody: Any) -> None:
    with pytest.raises(TypeError, match="authority must be"):
        owner_of(nobody)
    if not isinstance(nobody, str):
        with pytest.raises(TypeError, match="Owner takes a str"):
            Owner(nobody)
