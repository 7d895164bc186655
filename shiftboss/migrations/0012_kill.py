"""One more thing that can be asked of a program: to end it at once while it does not stop."""

from django.db import migrations

SCHEMA = """
alter table shiftboss_command
    drop constraint shiftboss_command_verb_check,
    add constraint shiftboss_command_verb_check
        check (verb in ('start', 'drain', 'stop', 'kill', 'restart', 'scale', 'tail'));
"""

DROP = """
delete from shiftboss_command where verb = 'kill';
alter table shiftboss_command
    drop constraint shiftboss_command_verb_check,
    add constraint shiftboss_command_verb_check
        check (verb in ('start', 'drain', 'stop', 'restart', 'scale', 'tail'));
"""


class Migration(migrations.Migration):
    """A verb of the commands, and the permission to use it."""

    dependencies = [("shiftboss", "0011_resources")]

    operations = [
        migrations.RunSQL(SCHEMA, DROP),
        migrations.AlterModelOptions(
            name="host",
            options={
                "permissions": [
                    ("drain_program", "Can drain programs of hosts"),
                    ("kill_program", "Can kill programs of hosts that do not stop"),
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
