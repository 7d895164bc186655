"""The tables as Django models: windows for reading. The store is the only door for writing.

The tables themselves, their constraints and indexes are made by the migrations in SQL.
"""

from typing import Any, NoReturn

from django.contrib.postgres.fields import ArrayField
from django.db import models


class ReadOnly(Exception):
    """A model of the record was asked to write; use the store's verbs."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ReadOnly("the record is written by its verbs only (shiftboss.queue.store), never through models")


class WindowQuerySet(models.QuerySet[Any]):
    """A query set that can only read."""

    create = bulk_create = update = bulk_update = delete = get_or_create = update_or_create = _refuse


class Window(models.Model):
    """A model that can only read."""

    objects = WindowQuerySet.as_manager()

    class Meta:
        abstract = True

    save = save_base = delete = _refuse


class JobColumns(Window):
    """What a job is, live or finished."""

    queue = models.TextField()
    task = models.TextField()
    args = models.JSONField()
    state = models.TextField()
    priority = models.SmallIntegerField()
    due_at = models.DateTimeField()
    deadline = models.DateTimeField(null=True)
    enqueued_at = models.DateTimeField()
    owner = models.TextField(null=True)
    tenant = models.TextField(null=True)
    key = models.TextField(null=True)
    watchers = ArrayField(models.TextField())
    tags = ArrayField(models.TextField())
    limit_keys = ArrayField(models.TextField())
    meta = models.JSONField()
    trace = models.TextField(null=True)
    batch_id = models.BigIntegerField(null=True)
    rerun_of = models.BigIntegerField(null=True)
    revision_id = models.BigIntegerField(null=True)
    code_version = models.TextField(null=True)
    failures = models.IntegerField()
    losses = models.IntegerField()
    failure_limit = models.IntegerField()
    loss_limit = models.IntegerField()
    suspect = models.BooleanField()
    worker_id = models.BigIntegerField(null=True)
    fence = models.BigIntegerField()
    lease_expires_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    cancel_cause = models.TextField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    quarantine_reason = models.TextField(null=True)
    quarantined_at = models.DateTimeField(null=True)
    progress = models.JSONField(null=True)
    checkpoint = models.JSONField(null=True)
    event_seq = models.IntegerField()
    error_code = models.TextField(null=True)
    error_type = models.TextField(null=True)
    error_message = models.TextField(null=True)
    error_fingerprint = models.TextField(null=True)

    class Meta(Window.Meta):
        abstract = True


class Job(JobColumns):
    """Live work: waiting, running or quarantined."""

    id = models.BigAutoField(primary_key=True)
    follow_up = models.BooleanField()
    slot_id = models.BigIntegerField(null=True)

    class Meta(JobColumns.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_job"
        default_permissions = ("view",)
        # One for each act; `shiftboss.acts` asks for them.
        permissions = [
            ("backfill_task", "Can start, pause and retry backfills"),
            ("cancel_job", "Can cancel jobs"),
            ("discard_job", "Can discard quarantined jobs"),
            ("drain_worker", "Can drain workers"),
            ("edit_job", "Can rerun jobs with other arguments"),
            ("expedite_job", "Can expedite jobs"),
            ("limit_queue", "Can limit how many jobs of a queue run at once"),
            ("pause_queue", "Can pause queues"),
            ("purge_history", "Can purge the history"),
            ("quarantine_job", "Can quarantine waiting jobs"),
            ("reinstate_job", "Can reinstate quarantined jobs"),
            ("reprioritise_job", "Can change the priority of jobs"),
            ("rerun_job", "Can rerun finished jobs"),
            ("reschedule_job", "Can change when jobs are due"),
            ("resume_queue", "Can resume queues"),
            ("stop_worker", "Can stop workers"),
            ("view_arguments", "Can reveal the arguments of jobs"),
            ("view_traceback", "Can see tracebacks and what handlers have written"),
        ]


class Finished(JobColumns):
    """Completed, cancelled or discarded work, one partition a day of `finished_at` (UTC)."""

    id = models.BigIntegerField(primary_key=True)
    result = models.JSONField(null=True)
    run_ms = models.IntegerField(null=True)
    finished_at = models.DateTimeField()

    class Meta(JobColumns.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_finished"


class Attempt(Window):
    """The end of an attempt that was not a success, with its evidence."""

    pk = models.CompositePrimaryKey("job_id", "fence", "ended_at")
    job_id = models.BigIntegerField()
    fence = models.BigIntegerField()
    queue = models.TextField()
    task = models.TextField()
    worker_id = models.BigIntegerField(null=True)
    outcome = models.TextField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    run_ms = models.IntegerField(null=True)
    error_code = models.TextField(null=True)
    error_type = models.TextField(null=True)
    error_message = models.TextField(null=True)
    error_fingerprint = models.TextField(null=True)
    traceback = models.TextField(null=True)
    evidence = models.JSONField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_attempt"


class Event(Window):
    """Something that a job's own times do not tell, such as a rejected late write."""

    pk = models.CompositePrimaryKey("job_id", "seq", "at")
    job_id = models.BigIntegerField()
    seq = models.IntegerField()
    at = models.DateTimeField()
    kind = models.TextField()
    worker_id = models.BigIntegerField(null=True)
    fence = models.BigIntegerField(null=True)
    data = models.JSONField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_event"


class Worker(Window):
    """One worker process (a keeper), with its last heartbeat."""

    id = models.BigAutoField(primary_key=True)
    pool = models.TextField()
    host = models.TextField()
    pid = models.IntegerField()
    code_version = models.TextField(null=True)
    state = models.TextField()
    queues = ArrayField(models.TextField())
    tasks = ArrayField(models.TextField())
    processes = models.IntegerField()
    threads = models.IntegerField()
    in_use = models.IntegerField()
    idle = models.BooleanField()
    lease_seconds = models.FloatField()
    heartbeat_seconds = models.FloatField()
    lag_ms = models.IntegerField()
    worst_lag_ms = models.IntegerField()
    losses = models.IntegerField()
    resources = models.JSONField()
    tainted = models.IntegerField()
    dropped = models.BigIntegerField()
    memory_kb = models.BigIntegerField(null=True)
    cpu_ms = models.BigIntegerField(null=True)
    ordered = models.TextField(null=True)
    ordered_by = models.TextField(null=True)
    ordered_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_worker"


class Queue(Window):
    """What people or settings have ordered of a queue: a pause, a limit."""

    name = models.TextField(primary_key=True)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.TextField(null=True)
    pause_reason = models.TextField(null=True)
    concurrency = models.IntegerField(null=True)
    sequential = models.BooleanField()
    limited_by = models.TextField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_queue"


class Slot(Window):
    """The right of a limited queue to run one job, free or taken."""

    id = models.BigAutoField(primary_key=True)
    queue = models.TextField()
    job_id = models.BigIntegerField(null=True)
    fence = models.BigIntegerField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_slot"


class Revision(Window):
    """What a task's options were; the same configuration has the same `revision`."""

    id = models.BigAutoField(primary_key=True)
    revision = models.BigIntegerField()
    task = models.TextField()
    config = models.JSONField()
    created_at = models.DateTimeField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_revision"


class Backfill(Window):
    """One task over many items."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField()
    owner = models.TextField(null=True)
    task = models.TextField()
    queue = models.TextField()
    priority = models.SmallIntegerField()
    concurrency = models.IntegerField()
    failure_limit = models.IntegerField()
    loss_limit = models.IntegerField()
    revision_id = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()
    paused_at = models.DateTimeField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_backfill"


class BackfillItem(Window):
    """One item of a backfill, and what became of it."""

    pk = models.CompositePrimaryKey("backfill_id", "item")
    backfill_id = models.BigIntegerField()
    item = models.TextField()
    args = models.JSONField()
    job_id = models.BigIntegerField(null=True)
    outcome = models.TextField(null=True)
    again = models.BooleanField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_backfill_item"


class Purge(Window):
    """An order to drop the history before a day."""

    before = models.DateField(primary_key=True)
    asked_at = models.DateTimeField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_purge"


class Waiter(Window):
    """Somebody who awaits the end of a job right now."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField()
    until = models.DateTimeField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_waiter"


class Sample(Window):
    """What the maintainer last saw of a part of the whole."""

    part = models.TextField(primary_key=True)
    at = models.DateTimeField()
    took_ms = models.IntegerField()
    seen = models.JSONField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_sample"


class Histogram(Window):
    """What ended within a span of time, of all, of a queue or of a task."""

    pk = models.CompositePrimaryKey("seconds", "queue", "task", "at")
    seconds = models.IntegerField()
    queue = models.TextField()
    task = models.TextField()
    at = models.DateTimeField()
    completed = models.BigIntegerField()
    cancelled = models.BigIntegerField()
    discarded = models.BigIntegerField()
    failed = models.BigIntegerField()
    lost = models.BigIntegerField()
    enqueued = models.BigIntegerField()
    wait_buckets = ArrayField(models.SmallIntegerField())
    wait_jobs = ArrayField(models.BigIntegerField())
    run_buckets = ArrayField(models.SmallIntegerField())
    run_jobs = ArrayField(models.BigIntegerField())

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_histogram"


class Mark(Window):
    """Something that happened to the whole."""

    pk = models.CompositePrimaryKey("kind", "subject")
    kind = models.TextField()
    subject = models.TextField()
    at = models.DateTimeField()
    facts = models.JSONField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_mark"


class Host(Window):
    """A host whose supervisor is watched, and its agent."""

    name = models.TextField(primary_key=True)
    fence = models.BigIntegerField()
    hostname = models.TextField()
    pid = models.IntegerField()
    home = models.TextField()
    code_version = models.TextField(null=True)
    lease_seconds = models.FloatField()
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    gap_from = models.DateTimeField(null=True)
    gap_until = models.DateTimeField(null=True)
    trouble = models.TextField(null=True)
    programs = models.JSONField()
    dropped = models.BigIntegerField()
    resources = models.JSONField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_host"
        # One for each act; `shiftboss.acts` asks for them.
        permissions = [
            ("drain_program", "Can drain programs of hosts"),
            ("kill_program", "Can kill programs of hosts that do not stop"),
            ("release_program", "Can release programs that are held back"),
            ("restart_program", "Can restart programs of hosts"),
            ("scale_pool", "Can scale pools of workers"),
            ("start_program", "Can start programs of hosts"),
            ("stop_program", "Can stop programs of hosts"),
            ("tail_program", "Can see the logs of programs"),
        ]


class Process(Window):
    """One life of a program that a supervisor runs."""

    id = models.BigAutoField(primary_key=True)
    host = models.TextField()
    program = models.TextField()
    pool = models.TextField(null=True)
    launcher = models.IntegerField()
    pid = models.IntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ending = models.TextField(null=True)
    code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    asked = models.BooleanField()
    uptime_seconds = models.FloatField(null=True)
    peak_memory_kb = models.BigIntegerField(null=True)
    cpu_seconds = models.FloatField(null=True)
    worker_id = models.BigIntegerField(null=True)
    code_version = models.TextField(null=True)
    log = models.TextField(null=True)
    jobs = models.JSONField(null=True)
    noted_at = models.DateTimeField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_process"


class Roll(Window):
    """A rolling restart of workers."""

    id = models.BigAutoField(primary_key=True)
    pool = models.TextField(null=True)
    reason = models.TextField()
    asked_by = models.TextField()
    asked_at = models.DateTimeField()
    code_wanted = models.TextField(null=True)
    state = models.TextField()
    why = models.TextField(null=True)
    silent = ArrayField(models.TextField())
    ended_at = models.DateTimeField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_roll"
        permissions = [("roll_pool", "Can restart the workers of pools one after the other")]


class RollStep(Window):
    """One worker of a rolling restart."""

    pk = models.CompositePrimaryKey("roll_id", "number")
    roll_id = models.BigIntegerField()
    number = models.IntegerField()
    host = models.TextField()
    program = models.TextField()
    pool = models.TextField()
    state = models.TextField()
    launcher = models.IntegerField(null=True)
    launcher_after = models.IntegerField(null=True)
    worker_after = models.BigIntegerField(null=True)
    code_before = models.TextField(null=True)
    code_after = models.TextField(null=True)
    fence = models.BigIntegerField(null=True)
    began_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField(null=True)
    why = models.TextField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_roll_step"


class Scale(Window):
    """How many workers of a pool are to run on a host."""

    pk = models.CompositePrimaryKey("host", "pool")
    host = models.TextField()
    pool = models.TextField()
    count = models.IntegerField()
    workers = models.IntegerField()
    set_by = models.TextField()
    set_at = models.DateTimeField()
    automatic = models.BooleanField()

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_scale"


class Command(Window):
    """What a person has asked of a program or a pool of a host."""

    id = models.BigAutoField(primary_key=True)
    host = models.TextField()
    verb = models.TextField()
    program = models.TextField(null=True)
    pool = models.TextField(null=True)
    count = models.IntegerField(null=True)
    asked_by = models.TextField()
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    state = models.TextField()
    claimed_at = models.DateTimeField(null=True)
    fence = models.BigIntegerField(null=True)
    progress = models.TextField(null=True)
    result = models.JSONField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_command"


class Hold(Window):
    """A program that crashed in a loop and is, or was, held back."""

    id = models.BigAutoField(primary_key=True)
    host = models.TextField()
    program = models.TextField()
    pool = models.TextField(null=True)
    step = models.IntegerField()
    held_at = models.DateTimeField()
    until = models.DateTimeField()
    evidence = models.JSONField()
    poison_job = models.BigIntegerField(null=True)
    fence = models.BigIntegerField()
    stopped_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    released_as = models.TextField(null=True)
    released_by = models.TextField(null=True)
    taken_up_at = models.DateTimeField(null=True)

    class Meta(Window.Meta):
        abstract = False
        app_label = "shiftboss"
        db_table = "shiftboss_hold"


class Audit(Window):
    """One act of a person. Not managed: the flush after a test must not empty what refuses to be emptied."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    actor_kind = models.TextField()
    actor_id = models.TextField(null=True)
    actor_name = models.TextField()
    via = models.TextField()
    act = models.TextField()
    job_id = models.BigIntegerField(null=True)
    queue = models.TextField(null=True)
    reason = models.TextField()
    jobs = models.IntegerField()
    operation = models.UUIDField()
    request_id = models.TextField(null=True)
    asked = models.JSONField()
    before = models.JSONField()
    after = models.JSONField()

    class Meta(Window.Meta):
        abstract = False
        managed = False
        default_permissions = ("view",)
        app_label = "shiftboss"
        db_table = "shiftboss_audit"


class Token(models.Model):
    """A bearer token of the HTTP API: only the SHA-256 of it is kept, as hexadecimal digits.

    Whoever shows it acts as the user with this primary key. No foreign key: users may live in another database.
    """

    name = models.CharField(max_length=100)
    user_id = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "shiftboss"
        db_table = "shiftboss_token"
