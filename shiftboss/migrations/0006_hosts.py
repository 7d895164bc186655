"""Hosts with their agents, and the lives of the programs that supervisors run there."""

from django.db import migrations, models

SCHEMA = """
-- A host whose supervisor is watched, by one agent at a time: who holds the lease has the `fence`. `programs` is
-- what its supervisor said last, `trouble` why it says nothing now. take_host.sql, beat_host.sql.
create table shiftboss_host (
    name text primary key check (name <> '' and length(name) <= 100),
    fence bigint not null default 1,
    hostname text not null,
    pid integer not null,
    home text not null,
    code_version text,
    lease_seconds double precision not null check (lease_seconds > 0),
    started_at timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    stopped_at timestamptz,
    -- the last time for which no agent saw it
    gap_from timestamptz,
    gap_until timestamptz,
    trouble text,
    programs jsonb not null default '[]',
    -- lives that the agent had no room to remember while the record was away
    dropped bigint not null default 0,
    constraint shiftboss_host_gap check ((gap_from is null) = (gap_until is null))
) with (fillfactor = 50);

-- One life of a program: note_lives.sql writes it when it begins and when it ends. An end that nobody saw is
-- `unknown`, and `ended_at` then is when it was noticed. `jobs` is what its worker had in hand; null where that
-- was not to be known any more.
create table shiftboss_process (
    id bigint generated always as identity primary key,
    host text not null,
    program text not null,
    pool text,
    launcher integer not null,
    pid integer,
    started_at timestamptz not null,
    ended_at timestamptz,
    ending text check (ending in ('code', 'signal', 'unknown')),
    code integer,
    signal integer,
    asked boolean not null default false,
    uptime_seconds double precision,
    peak_memory_kb bigint,
    cpu_seconds double precision,
    worker_id bigint,
    code_version text,
    log text,
    jobs jsonb,
    noted_at timestamptz not null default clock_timestamp(),
    constraint shiftboss_process_life unique (host, program, started_at, launcher),
    constraint shiftboss_process_ended check ((ended_at is null) = (ending is null)),
    constraint shiftboss_process_code check (coalesce(ending = 'code', false) = (code is not null)),
    constraint shiftboss_process_signal check (coalesce(ending = 'signal', false) = (signal is not null))
);
-- lives.sql: the newest of all
create index shiftboss_process_started on shiftboss_process (started_at desc, id desc);
"""

DROP = """
drop table shiftboss_process, shiftboss_host;
"""


class Migration(migrations.Migration):
    dependencies = [("shiftboss", "0005_console")]

    operations = [
        migrations.RunSQL(
            SCHEMA,
            DROP,
            state_operations=[
                migrations.CreateModel(
                    "Host",
                    fields=[
                        ("name", models.TextField(primary_key=True, serialize=False)),
                        ("fence", models.BigIntegerField()),
                        ("hostname", models.TextField()),
                        ("pid", models.IntegerField()),
                        ("home", models.TextField()),
                        ("code_version", models.TextField(null=True)),
                        ("lease_seconds", models.FloatField()),
                        ("started_at", models.DateTimeField()),
                        ("heartbeat_at", models.DateTimeField()),
                        ("stopped_at", models.DateTimeField(null=True)),
                        ("gap_from", models.DateTimeField(null=True)),
                        ("gap_until", models.DateTimeField(null=True)),
                        ("trouble", models.TextField(null=True)),
                        ("programs", models.JSONField()),
                        ("dropped", models.BigIntegerField()),
                    ],
                    options={"db_table": "shiftboss_host", "abstract": False},
                ),
                migrations.CreateModel(
                    "Process",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("host", models.TextField()),
                        ("program", models.TextField()),
                        ("pool", models.TextField(null=True)),
                        ("launcher", models.IntegerField()),
                        ("pid", models.IntegerField(null=True)),
                        ("started_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("ending", models.TextField(null=True)),
                        ("code", models.IntegerField(null=True)),
                        ("signal", models.IntegerField(null=True)),
                        ("asked", models.BooleanField()),
                        ("uptime_seconds", models.FloatField(null=True)),
                        ("peak_memory_kb", models.BigIntegerField(null=True)),
                        ("cpu_seconds", models.FloatField(null=True)),
                        ("worker_id", models.BigIntegerField(null=True)),
                        ("code_version", models.TextField(null=True)),
                        ("log", models.TextField(null=True)),
                        ("jobs", models.JSONField(null=True)),
                        ("noted_at", models.DateTimeField()),
                    ],
                    options={"db_table": "shiftboss_process", "abstract": False},
                ),
            ],
        ),
    ]
