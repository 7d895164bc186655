"""What hosts have left of what their programs need."""

from django.db import migrations, models

SCHEMA = "alter table shiftboss_host add column resources jsonb"
DROP = "alter table shiftboss_host drop column resources"


class Migration(migrations.Migration):
    """A column of the hosts."""

    dependencies = [("shiftboss", "0010_rolls")]

    operations = [
        migrations.RunSQL(
            SCHEMA,
            DROP,
            state_operations=[
                migrations.AddField(model_name="host", name="resources", field=models.JSONField(null=True)),
            ],
        ),
    ]
