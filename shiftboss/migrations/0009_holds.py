"""Programs that are held back because they crash in a loop."""

from django.db import migrations, models

SCHEMA = """
-- A program that crashes in a loop is held back until a time: its host's agent stops it, and starts it again.
-- hold_program.sql makes the row, `evidence` is why. `stopped_at`: it is down, because of this. It ends with
-- `released_as`: its time (`time`), a person (`release`, `start`, `stop`), somebody who started it past the agent
-- (`others`), or the job that was the cause of it all, which is quarantined (`poison`; never in force).
-- Until `taken_up_at` an agent, the next one where this one dies, owes the program its start: take_up_hold.sql.
create table shiftboss_hold (
    id bigint generated always as identity primary key,
    host text not null,
    program text not null,
    pool text,
    step integer not null check (step >= 1),
    held_at timestamptz not null default clock_timestamp(),
    until timestamptz not null,
    evidence jsonb not null,
    poison_job bigint,
    fence bigint not null,
    stopped_at timestamptz,
    released_at timestamptz,
    released_as text check (released_as in ('time', 'release', 'start', 'stop', 'others', 'poison')),
    released_by text,
    taken_up_at timestamptz,
    constraint shiftboss_hold_released check ((released_at is null) = (released_as is null)),
    constraint shiftboss_hold_taken_up check (taken_up_at is null or released_at is not null),
    constraint shiftboss_hold_poison check ((poison_job is not null) = coalesce(released_as = 'poison', false))
);
-- One at a time of a program. open_holds.sql, release_hold.sql, samples.sql.
create unique index shiftboss_hold_open on shiftboss_hold (host, program) where taken_up_at is null;
-- holds.sql: those of a program, the newest first
create index shiftboss_hold_program on shiftboss_hold (host, program, id desc);
"""

DROP = """
drop table shiftboss_hold;
"""


class Migration(migrations.Migration):
    dependencies = [("shiftboss", "0008_commands")]

    operations = [
        migrations.RunSQL(
            SCHEMA,
            DROP,
            state_operations=[
                migrations.CreateModel(
                    "Hold",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("host", models.TextField()),
                        ("program", models.TextField()),
                        ("pool", models.TextField(null=True)),
                        ("step", models.IntegerField()),
                        ("held_at", models.DateTimeField()),
                        ("until", models.DateTimeField()),
                        ("evidence", models.JSONField()),
                        ("poison_job", models.BigIntegerField(null=True)),
                        ("fence", models.BigIntegerField()),
                        ("stopped_at", models.DateTimeField(null=True)),
                        ("released_at", models.DateTimeField(null=True)),
                        ("released_as", models.TextField(null=True)),
                        ("released_by", models.TextField(null=True)),
                        ("taken_up_at", models.DateTimeField(null=True)),
                    ],
                    options={"db_table": "shiftboss_hold", "abstract": False},
                ),
            ],
        ),
        migrations.AlterModelOptions(
            name="host",
            options={
                "permissions": [
                    ("drain_program", "Can drain programs of hosts"),
                    ("release_program", "Can release programs that are held back"),
                    ("restart_program", "Can restart programs of hosts"),
                    ("scale_pool", "Can scale pools of workers"),
                    ("start_program", "Can start programs of hosts"),
                    ("stop_program", "Can stop programs of hosts"),
                    ("tail_program", "Can see the logs of programs"),
                ],
            },
        ),
    ]
