"""Tracebacks and the output of handlers are seen with a permission of their own."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("shiftboss", "0003_contract"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("backfill_task", "Can start, pause and retry backfills"),
                    ("cancel_job", "Can cancel jobs"),
                    ("discard_job", "Can discard quarantined jobs"),
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
                    ("view_traceback", "Can see tracebacks and what handlers have written"),
                ],
            },
        ),
    ]
