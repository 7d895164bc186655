"""Rolling restarts, and counts of workers that last."""

import django.contrib.postgres.fields
from django.db import migrations, models

SCHEMA = """
-- A rolling restart: workers are drained, stopped and started one after the other over all hosts: begin_roll.sql.
-- The agent whose host has the step in hand moves it: move_step.sql. A roll ends with its last step, with one that
-- fails (`stopped`, and `why`), or as a person says (`cancelled`). `silent`: hosts that have workers of the pool,
-- and no agent that could restart them.
create table shiftboss_roll (
    id bigint generated always as identity primary key,
    pool text,
    reason text not null,
    asked_by text not null,
    asked_at timestamptz not null default clock_timestamp(),
    code_wanted text,
    state text not null default 'running' check (state in ('running', 'done', 'stopped', 'cancelled')),
    why text,
    silent text[] not null default '{}',
    ended_at timestamptz,
    constraint shiftboss_roll_ended check ((state = 'running') = (ended_at is null)),
    constraint shiftboss_roll_why check (state <> 'stopped' or why is not null)
);
-- One at a time: two would take two workers away at once, of the same pool or of the same host.
create unique index shiftboss_roll_running on shiftboss_roll ((true)) where state = 'running';

-- `launcher` is of the life that is to end, `launcher_after` of the one that is to prove itself.
create table shiftboss_roll_step (
    roll_id bigint not null,
    number integer not null,
    host text not null,
    program text not null,
    pool text not null,
    state text not null default 'waiting' check (
        state in ('waiting', 'draining', 'starting', 'proving', 'done', 'failed')),
    launcher integer,
    launcher_after integer,
    worker_after bigint,
    code_before text,
    code_after text,
    fence bigint,
    began_at timestamptz,
    moved_at timestamptz,
    why text,
    primary key (roll_id, number),
    constraint shiftboss_roll_step_began check (
        (state = 'waiting') = (began_at is null) and (began_at is null) = (moved_at is null)),
    constraint shiftboss_roll_step_why check ((state = 'failed') = (why is not null))
);
-- step.sql: what an agent has in hand, also of a roll that has ended meanwhile
create unique index shiftboss_roll_step_in_hand on shiftboss_roll_step (host)
    where state in ('draining', 'starting', 'proving');

-- How many workers of a pool run on a host, as a person said, or the agent itself (`automatic`): keep_scale.sql,
-- scale_by_itself.sql. It holds as long as the settings say `workers`, as they did then.
create table shiftboss_scale (
    host text not null,
    pool text not null,
    count integer not null check (count >= 0),
    workers integer not null check (workers >= 0),
    set_by text not null,
    set_at timestamptz not null default clock_timestamp(),
    automatic boolean not null,
    primary key (host, pool)
);
"""

DROP = """
drop table shiftboss_scale, shiftboss_roll_step, shiftboss_roll;
"""


class Migration(migrations.Migration):
    dependencies = [("shiftboss", "0009_holds")]

    operations = [
        migrations.RunSQL(
            SCHEMA,
            DROP,
            state_operations=[
                migrations.CreateModel(
                    "Roll",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("pool", models.TextField(null=True)),
                        ("reason", models.TextField()),
                        ("asked_by", models.TextField()),
                        ("asked_at", models.DateTimeField()),
                        ("code_wanted", models.TextField(null=True)),
                        ("state", models.TextField()),
                        ("why", models.TextField(null=True)),
                        (
                            "silent",
                            django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                        ),
                        ("ended_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "db_table": "shiftboss_roll",
                        "abstract": False,
                        "permissions": [("roll_pool", "Can restart the workers of pools one after the other")],
                    },
                ),
                migrations.CreateModel(
                    "RollStep",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "roll_id", "number", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("roll_id", models.BigIntegerField()),
                        ("number", models.IntegerField()),
                        ("host", models.TextField()),
                        ("program", models.TextField()),
                        ("pool", models.TextField()),
                        ("state", models.TextField()),
                        ("launcher", models.IntegerField(null=True)),
                        ("launcher_after", models.IntegerField(null=True)),
                        ("worker_after", models.BigIntegerField(null=True)),
                        ("code_before", models.TextField(null=True)),
                        ("code_after", models.TextField(null=True)),
                        ("fence", models.BigIntegerField(null=True)),
                        ("began_at", models.DateTimeField(null=True)),
                        ("moved_at", models.DateTimeField(null=True)),
                        ("why", models.TextField(null=True)),
                    ],
                    options={"db_table": "shiftboss_roll_step", "abstract": False},
                ),
                migrations.CreateModel(
                    "Scale",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "host", "pool", blank=True, editable=False, primary_key=True, serialize=False
                            ),
                        ),
                        ("host", models.TextField()),
                        ("pool", models.TextField()),
                        ("count", models.IntegerField()),
                        ("workers", models.IntegerField()),
                        ("set_by", models.TextField()),
                        ("set_at", models.DateTimeField()),
                        ("automatic", models.BooleanField()),
                    ],
                    options={"db_table": "shiftboss_scale", "abstract": False},
                ),
            ],
        ),
    ]
