"""Workers."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from shiftboss.queue.models.window import Window


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
