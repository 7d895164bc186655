"""Jobs, their attempts and events, and what is kept beside them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from shiftboss.queue.models.window import Window


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
