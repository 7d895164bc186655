"""What the console shows of the whole: samples, histograms and marks of the maintainer; orders to workers."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

SCHEMA = """
-- What the maintainer last saw of the whole, part by part: sample.sql writes, samples.sql reads. Each part has its
-- own pace, as `took_ms` demands.
create table shiftboss_sample (
    part text primary key,
    at timestamptz not null default clock_timestamp(),
    took_ms integer not null,
    seen jsonb not null
) with (fillfactor = 50);

-- What finished and failed within a span of `seconds` that begins at `at`: of all (queue and task ''), of a queue
-- (task '') and of a task. A histogram is two arrays, the numbers of its buckets and the jobs in each.
create table shiftboss_histogram (
    seconds integer not null check (seconds in (60, 600, 3600)),
    queue text not null,
    task text not null,
    at timestamptz not null,
    completed bigint not null default 0,
    cancelled bigint not null default 0,
    discarded bigint not null default 0,
    failed bigint not null default 0,
    lost bigint not null default 0,
    enqueued bigint not null default 0,
    wait_buckets smallint[] not null default '{}',
    wait_jobs bigint[] not null default '{}',
    run_buckets smallint[] not null default '{}',
    run_jobs bigint[] not null default '{}',
    primary key (seconds, queue, task, at),
    constraint shiftboss_histogram_wait check (cardinality(wait_buckets) = cardinality(wait_jobs)),
    constraint shiftboss_histogram_run check (cardinality(run_buckets) = cardinality(run_jobs)),
    constraint shiftboss_histogram_task check (task = '' or queue <> '')
);
-- what is kept no longer goes by its time
create index shiftboss_histogram_at on shiftboss_histogram using brin (at) with (pages_per_range = 16);

-- What happened to the whole: a code version seen for the first time, a worker lost. Pauses and limits stand in
-- the audit.
create table shiftboss_mark (
    kind text not null check (kind in ('deploy', 'worker_lost')),
    subject text not null,
    at timestamptz not null default clock_timestamp(),
    facts jsonb not null default '{}',
    primary key (kind, subject)
);
create index shiftboss_mark_at on shiftboss_mark (at);

-- What a worker's processes use, and what a person has ordered of it, which its next heartbeat is answered with.
alter table shiftboss_worker
    add column memory_kb bigint,
    add column cpu_ms bigint,
    add column ordered text check (ordered in ('drain', 'stop')),
    add column ordered_by text,
    add column ordered_at timestamptz;

-- histogram_minutes.sql
create index shiftboss_attempt_at on shiftboss_attempt using brin (ended_at) with (pages_per_range = 16);
-- the quarantine by its reasons; sample_quarantine.sql reads nothing else
create index shiftboss_job_reason on shiftboss_job (quarantine_reason, id) include (queue, quarantined_at)
    where state = 'quarantined';
-- reruns of a job, jobs of a batch
create index shiftboss_job_rerun_of on shiftboss_job (rerun_of) where rerun_of is not null;
create index shiftboss_finished_rerun_of on shiftboss_finished (rerun_of) where rerun_of is not null;
create index shiftboss_job_batch on shiftboss_job (batch_id, id) where batch_id is not null;
create index shiftboss_finished_batch on shiftboss_finished (batch_id, id) where batch_id is not null;
"""

DROP = """
drop index shiftboss_finished_batch, shiftboss_job_batch, shiftboss_finished_rerun_of, shiftboss_job_rerun_of;
drop index shiftboss_job_reason, shiftboss_attempt_at;
alter table shiftboss_worker drop column memory_kb, drop column cpu_ms, drop column ordered,
    drop column ordered_by, drop column ordered_at;
drop table shiftboss_mark, shiftboss_histogram, shiftboss_sample;
"""


class Migration(migrations.Migration):
    dependencies = [("shiftboss", "0004_evidence")]

    operations = [
        migrations.RunSQL(
            SCHEMA,
            DROP,
            state_operations=[
                migrations.CreateModel(
                    "Sample",
                    fields=[
                        ("part", models.TextField(primary_key=True, serialize=False)),
                        ("at", models.DateTimeField()),
                        ("took_ms", models.IntegerField()),
                        ("seen", models.JSONField()),
                    ],
                    options={"db_table": "shiftboss_sample", "abstract": False},
                ),
                migrations.CreateModel(
                    "Histogram",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "seconds",
                                "queue",
                                "task",
                                "at",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("seconds", models.IntegerField()),
                        ("queue", models.TextField()),
                        ("task", models.TextField()),
                        ("at", models.DateTimeField()),
                        ("completed", models.BigIntegerField()),
                        ("cancelled", models.BigIntegerField()),
                        ("discarded", models.BigIntegerField()),
                        ("failed", models.BigIntegerField()),
                        ("lost", models.BigIntegerField()),
                        ("enqueued", models.BigIntegerField()),
                        ("wait_buckets", ArrayField(models.SmallIntegerField())),
                        ("wait_jobs", ArrayField(models.BigIntegerField())),
                        ("run_buckets", ArrayField(models.SmallIntegerField())),
                        ("run_jobs", ArrayField(models.BigIntegerField())),
                    ],
                    options={"db_table": "shiftboss_histogram", "abstract": False},
                ),
                migrations.CreateModel(
                    "Mark",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "kind",
                                "subject",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("kind", models.TextField()),
                        ("subject", models.TextField()),
                        ("at", models.DateTimeField()),
                        ("facts", models.JSONField()),
                    ],
                    options={"db_table": "shiftboss_mark", "abstract": False},
                ),
                migrations.AddField("worker", "memory_kb", models.BigIntegerField(null=True)),
                migrations.AddField("worker", "cpu_ms", models.BigIntegerField(null=True)),
                migrations.AddField("worker", "ordered", models.TextField(null=True)),
                migrations.AddField("worker", "ordered_by", models.TextField(null=True)),
                migrations.AddField("worker", "ordered_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": ("view",),
                "permissions": [
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
                ],
            },
        ),
    ]
