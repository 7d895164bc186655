"""Hosts, the programs that run there, and what is asked of them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from shiftboss.queue.models.window import Window


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
