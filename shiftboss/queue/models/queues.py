"""Queues and backfills, and what the maintainer has seen of the whole."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from shiftboss.queue.models.window import Window


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
