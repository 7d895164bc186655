"""Something in every corner of the console, and where each of its pages and acts is: written by hand, and held
against the addresses themselves in `test_accessible`.

A new address has no line here, and fails the test until somebody has said where it is found.
"""

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User

from shiftboss import acts
from shiftboss.permissions import Act, Person, Via
from shiftboss.queue.contract import Note, NoteKind
from shiftboss.queue.store import backfill, commands, histograms, hosts, notes, processes, rolls
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.store.hosts import Agent
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.rolls import Move
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.store.making import a_hold, execute, rows

LONG_QUEUE = "a-queue-whose-name-is-long-and-has-no-spaces-at-all-" + "x" * 40
LONG_TASK = "a_module_with_a_very_long_name_indeed." * 8 + "task"
HOST, PROGRAM = "a-host-with-a-long-name-" + "h" * 70, "worker-default-1"
KEPT = {
    "host": "h" * 250,
    "args_sha256": "0" * 64,
    "checkpoint": {"after": "c" * 1000},
    "from_elsewhere": "e" * 1000,
    "output": "o" * 1000 + "\nanother line" * 200 + "\nthe last line",
}
"""What an attempt has kept: all of it long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corners:
    """What there is: jobs, workers and backfills by their ids, an operation."""

    worker: int
    completed: int
    quarantined: int
    scheduled: int
    running: int
    going_on: int
    paused: int
    failed: int
    operation: str
    command: int
    log: int
    roll: int

    def at(self, address: str) -> str:
        """The address of one of them."""
        return address.format(**asdict(self), queue=LONG_QUEUE, host=HOST, program=PROGRAM)


def corners(operator: User) -> Corners:
    """Something in every corner of every page: long, narrow, wrong and hostile."""
    by = Person.of_user(operator, via=Via.CONSOLE)
    worker = scenes.worker("default", "mail", LONG_QUEUE, lease_seconds=600)
    scenes.heartbeat(worker, in_use=3, lag_ms=4000, losses=2, memory_kb=123_456, tainted=12, dropped=123_456)
    completed = scenes.completed_job(worker)
    execute("update shiftboss_finished set finished_at = finished_at - interval '2 minutes'")
    run(histograms.write(authority=scenes.SYSTEM))
    quarantined = scenes.job(max_attempts=1, args='{"args": ["' + "y" * 4000 + '"], "kwargs": {}}')
    scenes.failed(scenes.claimed(worker), worker, message="m" * 1900, evidence=json.dumps(KEPT))
    running = scenes.job()
    [claimed] = scenes.claimed(worker)
    told = [
        Note(NoteKind.EVENT, '{"rows": "' + "y" * 2000 + '"}', "e" * 90),
        Note(NoteKind.PROGRESS, '"' + "p" * 900 + '"'),
    ]
    run(notes.note([(claimed.lease, note) for note in told], authority=scenes.SYSTEM, worker_id=worker))
    scenes.job(LONG_TASK, queue=LONG_QUEUE)
    acts.pause(LONG_QUEUE, by=by, reason="z" * 900)
    acts.limit(LONG_QUEUE, by=by, limit=10_000, reason="z" * 900)
    held = acts.on_many(Act.QUARANTINE, [scenes.job(), scenes.job()], by=by, reason="by mistake")
    going_on, paused, failed = (_backfill(name * 90) for name in "bpf")
    command, log = _hosts(by)
    run(backfill.pause(paused, authority=scenes.SYSTEM))
    run(backfill.cancel(failed, authority=scenes.SYSTEM))
    return Corners(
        worker=worker,
        completed=completed,
        quarantined=quarantined,
        scheduled=scenes.job(LONG_TASK, queue="mail", due_at=datetime.now(UTC) + timedelta(hours=1)),
        running=running,
        going_on=going_on,
        paused=paused,
        failed=failed,
        operation=str(held.operation),
        command=command,
        log=log,
        roll=_roll(by),
    )


def _roll(by: Person) -> int:
    """A rolling restart that runs, after one that has stopped."""
    for version in ("v" * 90, None):
        reason = "r" * 900
        roll = acts.roll_pool("default", by=by, reason=reason, code_wanted=version).roll_id or 0
        step = run(rolls.step(authority=scenes.SYSTEM, host=HOST))
        [(fence,)] = rows("select fence from shiftboss_host where name = %s", HOST)
        assert step
        to = Move(to="failed", why="w" * 900) if version else Move(to="draining", launcher=10)
        assert run(rolls.move(step, to, authority=scenes.SYSTEM, host=HOST, fence=fence))
    return roll


def _hosts(by: Person) -> tuple[int, int]:
    """A host with programs of every kind, one that is silent; a command that failed, and one for a log."""
    now = time.time()
    worker = scenes.worker("elsewhere", host=HOST, pid=11, lease_seconds=600)
    execute("update shiftboss_worker set code_version = %s where id = %s", "v" * 80, worker)
    seen = [
        {
            "name": PROGRAM,
            "state": "RUNNING",
            "pid": 11,
            "launcher": 10,
            "pool": "default",
            "memory_kb": 51_200,
            "cores": 1.5,
        },
        {"name": "worker-default-2", "state": "STOPPED", "pid": None, "launcher": None, "pool": "default"},
        {"name": "held", "state": "FATAL", "pid": None, "launcher": None, "trouble": "t" * 300},
        {"name": "w" * 90, "state": "BACKOFF", "pid": 3, "launcher": 2},
        {"name": "deaf", "state": "STOPPING", "pid": 5, "launcher": 4},
    ]
    fences = {}
    for name, trouble in (
        (HOST, None),
        ("silent", None),
        ("wedged", "supervisord does not answer on /" + "s" * 90),
    ):
        agent = Agent(
            name=name, hostname=name, pid=9, home="/srv/" + "s" * 90, code_version="v7", lease_seconds=600
        )
        fences[name] = run(hosts.take(agent, authority=scenes.SYSTEM)) or 0
        pictures = [
            {"since": int(now) - 300, "pool": None, "memory_kb": None, "trouble": None} | one for one in seen
        ]
        beat = hosts.beat(name, authority=scenes.SYSTEM, fence=fences[name], programs=pictures, trouble=trouble)
        assert run(beat)
    execute("update shiftboss_host set heartbeat_at = now() - interval '2 h' where name = 'silent'")
    execute("update shiftboss_host set gap_from = now() - interval '3 h', gap_until = now() - interval '2 h'")
    lives = [
        Life(program=PROGRAM, pool="default", launcher=n, started=now - 3600 * n, **how)
        for n, how in (
            (9, {"ended": now - 3600 * 9 + 60, "ending": "unknown"}),
            (7, {"ended": now - 3600 * 7 + 60, "ending": "signal", "signal": 11, "log": ("l" * 300 + "\n") * 40}),
            (
                5,
                {"ended": now - 3600 * 5 + 60, "ending": "code", "code": 0, "asked": True, "peak_memory_kb": 9000},
            ),
            (1, {"pid": 11}),
        )
    ]
    assert run(processes.note(lives, authority=scenes.SYSTEM, host=HOST, fence=fences[HOST]))
    a_hold(fences[HOST], host=HOST, program="held")
    failed = acts.restart_program(HOST, PROGRAM, by=by, reason="r" * 900).command_id or 0
    log = acts.tail_program(HOST, PROGRAM, by=by).command_id or 0
    run(commands.claim(authority=scenes.SYSTEM, host=HOST, fence=fences[HOST]))
    for number, result in (
        (failed, {"error": "e" * 900}),
        (log, {"lines": ["x" * 1900, "a line", "y" * 90] * 30}),
    ):
        ending = commands.end(
            number, authority=scenes.SYSTEM, fence=fences[HOST], failed="error" in result, result=result
        )
        assert run(ending)
    acts.drain_program(HOST, PROGRAM, by=by, reason="is waited for")
    return failed, log


def _backfill(name: str) -> int:
    new = NewBackfill(
        name=name,
        task=LONG_TASK,
        queue=LONG_QUEUE,
        priority=0,
        concurrency=10_000,
        failure_limit=1,
        loss_limit=3,
    )
    number = run(backfill.begin(new, authority=scenes.SYSTEM))
    run(backfill.add(number, [(f"{n:03}", "{}") for n in range(3)], authority=scenes.SYSTEM))
    return number


PAGES: dict[str, tuple[str, ...]] = {
    "overview": ("/",),
    "jobs": (
        "/jobs/?state=quarantined",
        "/jobs/?state=available",
        "/jobs/?q=stat:x+task:invoice",
        "/jobs/?q=queue:nowhere",
        f"/jobs/?state=any&q=-task:{'x' * 300}&columns=queue,owner,key,tags,failures,enqueued,due,meta.a",
    ),
    "job": ("/jobs/{quarantined}/", "/jobs/{scheduled}/", "/jobs/{running}/"),
    "quarantine": ("/quarantine/",),
    "queues": ("/queues/",),
    "queue": ("/queues/one/?queue={queue}",),
    "workers": ("/workers/",),
    "worker": ("/workers/{worker}/",),
    "hosts": ("/hosts/",),
    "program": ("/hosts/{host}/{program}/",),
    "log": ("/hosts/{host}/{program}/log/?command={log}", "/hosts/{host}/{program}/log/"),
    "command": ("/commands/{command}/",),
    "rolls": ("/rolls/",),
    "roll": ("/rolls/{roll}/",),
    "backfills": ("/backfills/",),
    "backfill": ("/backfills/{going_on}/",),
    "audit": ("/audit/",),
    "login": ("/login/",),
}
"""Every page, by the name of its address, as it looks with one thing or another."""

NO_SUCH_JOB = "/jobs/999999/"

OF_QUARANTINED, OF_COMPLETED, OF_SCHEDULED = "/jobs/{quarantined}/", "/jobs/{completed}/", "/jobs/{scheduled}/"
OF_QUEUE, OF_WORKER = "/queues/one/?queue={queue}", "/workers/{worker}/"
OF_PROGRAM = "/hosts/{host}/{program}/"
FAILED = "?reason=failures_exhausted"

ASKED: dict[str, tuple[str, str]] = {
    "reinstatements": (OF_QUARANTINED, f"{OF_QUARANTINED}reinstatements/"),
    "discards": (OF_QUARANTINED, f"{OF_QUARANTINED}discards/"),
    "edits": (OF_QUARANTINED, f"{OF_QUARANTINED}edits/"),
    "reveals": (OF_QUARANTINED, f"{OF_QUARANTINED}reveals/"),
    "reruns": (OF_COMPLETED, f"{OF_COMPLETED}reruns/"),
    "expeditions": (OF_SCHEDULED, f"{OF_SCHEDULED}expeditions/"),
    "cancellations": (OF_SCHEDULED, f"{OF_SCHEDULED}cancellations/"),
    "reprioritisations": (OF_SCHEDULED, f"{OF_SCHEDULED}reprioritisations/"),
    "reschedulings": (OF_SCHEDULED, f"{OF_SCHEDULED}reschedulings/"),
    "quarantines": (OF_SCHEDULED, f"{OF_SCHEDULED}quarantines/"),
    "list-reveals": ("/jobs/?state=completed&q=args.customer%3D7", "/jobs/reveals/?"),
    "held-reinstatements": ("/quarantine/", f"/quarantine/reinstatements/{FAILED}"),
    "held-discards": ("/quarantine/", f"/quarantine/discards/{FAILED}"),
    "undoings": ("/audit/", "/operations/{operation}/undoings/"),
    "pauses": ("/queues/", "/queues/pauses/?queue=mail"),
    "limits": (OF_QUEUE, "/queues/limits/?queue={queue}"),
    "resumptions": (OF_QUEUE, "/queues/resumptions/?queue={queue}"),
    "queue-cancellations": (OF_QUEUE, "/queues/cancellations/?queue={queue}"),
    "worker-drains": (OF_WORKER, f"{OF_WORKER}drains/"),
    "worker-stops": (OF_WORKER, f"{OF_WORKER}stops/"),
    "program-restarts": (OF_PROGRAM, f"{OF_PROGRAM}restarts/"),
    "program-drains": (OF_PROGRAM, f"{OF_PROGRAM}drains/"),
    "program-stops": (OF_PROGRAM, f"{OF_PROGRAM}stops/"),
    "program-starts": ("/hosts/{host}/held/", "/hosts/{host}/held/starts/"),
    "program-releases": ("/hosts/{host}/held/", "/hosts/{host}/held/releases/"),
    "program-kills": ("/hosts/{host}/deaf/", "/hosts/{host}/deaf/kills/"),
    "roll-beginnings": ("/rolls/", "/rolls/beginnings/"),
    "roll-cancellations": ("/rolls/{roll}/", "/rolls/{roll}/cancellations/"),
    "pool-scales": ("/hosts/", "/hosts/{host}/pools/default/scales/"),
    "backfill-pauses": ("/backfills/{going_on}/", "/backfills/{going_on}/pauses/"),
    "backfill-cancellations": ("/backfills/{going_on}/", "/backfills/{going_on}/cancellations/"),
    "backfill-resumptions": ("/backfills/{paused}/", "/backfills/{paused}/resumptions/"),
    "backfill-retries": ("/backfills/{failed}/", "/backfills/{failed}/retries/"),
}
"""Every act whose form opens above a page, in the order of their links: that page, and how the form's address
begins."""

CHOSEN = {
    f"many-{act}": f"/jobs/many/{act}/?" + "job={%s}&job={running}" % of  # noqa: UP031
    for act, of in {
        "reinstatements": "quarantined",
        "reruns": "completed",
        "expeditions": "scheduled",
        "discards": "quarantined",
        "cancellations": "scheduled",
        "quarantines": "scheduled",
    }.items()
}
"""Every act on jobs that were ticked in a list: the address of its preview, which is a page of its own."""
