"""What people ask of the programs of a host; its agent does it."""

from django.db import migrations, models

SCHEMA = """
-- A person asks something of a program, or of a pool, of a host: ask_host.sql. The host's agent takes it once,
-- before it expires, and says what became of it: claim_commands.sql, say_command.sql, end_command.sql.
-- No path, no command line: a verb, and a name that the agent looks up in its own configuration.
create table shiftboss_command (
    id bigint generated always as identity primary key,
    host text not null,
    verb text not null check (verb in ('start', 'drain', 'stop', 'restart', 'scale', 'tail')),
    program text,
    pool text,
    count integer check (count >= 0),
    asked_by text not null,
    asked_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    state text not null default 'waiting' check (state in ('waiting', 'claimed', 'done', 'failed')),
    claimed_at timestamptz,
    fence bigint,
    progress text,
    result jsonb,
    ended_at timestamptz,
    constraint shiftboss_command_of check (
        (verb = 'scale') = (pool is not null) and (verb = 'scale') = (count is not null)
        and (verb = 'scale') = (program is null)),
    constraint shiftboss_command_claimed check (
        (state = 'waiting') = (fence is null) and (fence is null) = (claimed_at is null)),
    constraint shiftboss_command_ended check ((state in ('done', 'failed')) = (ended_at is not null))
);
-- claim_commands.sql
create index shiftboss_command_waiting on shiftboss_command (host, id) where state = 'waiting';
"""

DROP = """
drop table shiftboss_command;
"""


class Migration(migrations.Migration):
    dependencies = [("shiftboss", "0007_audit_of_many")]

    operations = [
        migrations.RunSQL(
            SCHEMA,
            DROP,
            state_operations=[
                migrations.CreateModel(
                    "Command",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        ("host", models.TextField()),
                        ("verb", models.TextField()),
                        ("program", models.TextField(null=True)),
                        ("pool", models.TextField(null=True)),
                        ("count", models.IntegerField(null=True)),
                        ("asked_by", models.TextField()),
                        ("asked_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField()),
                        ("state", models.TextField()),
                        ("claimed_at", models.DateTimeField(null=True)),
                        ("fence", models.BigIntegerField(null=True)),
                        ("progress", models.TextField(null=True)),
                        ("result", models.JSONField(null=True)),
                        ("ended_at", models.DateTimeField(null=True)),
                    ],
                    options={"db_table": "shiftboss_command", "abstract": False},
                ),
            ],
        ),
        migrations.AlterModelOptions(
            name="host",
            options={
                "permissions": [
                    ("drain_program", "Can drain programs of hosts"),
                    ("restart_program", "Can restart programs of hosts"),
                    ("scale_pool", "Can scale pools of workers"),
                    ("start_program", "Can start programs of hosts"),
                    ("stop_program", "Can stop programs of hosts"),
                    ("tail_program", "Can see the logs of programs"),
                ],
            },
        ),
    ]
