"""Acts on many are found by each of their jobs."""

from django.db import migrations

SCHEMA = """
-- audit_of_job.sql: acts on many
create index shiftboss_audit_jobs on shiftboss_audit using gin ((after -> 'ids') jsonb_path_ops)
    where after -> 'ids' is not null;
"""

DROP = "drop index shiftboss_audit_jobs;"


class Migration(migrations.Migration):
    dependencies = [("shiftboss", "0006_hosts")]

    operations = [migrations.RunSQL(SCHEMA, DROP)]
