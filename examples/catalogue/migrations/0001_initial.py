"""The tables of the catalogue."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Overview",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("files", models.IntegerField(default=0)),
                ("hashed", models.IntegerField(default=0)),
                ("parsed", models.IntegerField(default=0)),
                ("bytes", models.BigIntegerField(default=0)),
                ("lines", models.BigIntegerField(default=0)),
                ("tokens", models.BigIntegerField(default=0)),
                ("functions", models.BigIntegerField(default=0)),
                ("classes", models.BigIntegerField(default=0)),
                ("imports", models.BigIntegerField(default=0)),
                ("turn", models.BigIntegerField(default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("rebuilt_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "catalogue_overview",
            },
        ),
        migrations.CreateModel(
            name="Package",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("files", models.IntegerField(default=0)),
                ("hashed", models.IntegerField(default=0)),
                ("parsed", models.IntegerField(default=0)),
                ("bytes", models.BigIntegerField(default=0)),
                ("lines", models.BigIntegerField(default=0)),
                ("tokens", models.BigIntegerField(default=0)),
                ("functions", models.BigIntegerField(default=0)),
                ("classes", models.BigIntegerField(default=0)),
                ("imports", models.BigIntegerField(default=0)),
                ("folder", models.TextField()),
                ("package", models.TextField()),
            ],
            options={
                "db_table": "catalogue_package",
                "constraints": [
                    models.UniqueConstraint(fields=("folder", "package"), name="catalogue_package_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="SourceFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("folder", models.TextField()),
                ("path", models.TextField(help_text="relative to the folder, with forward slashes")),
                ("package", models.TextField(help_text="the path's own folder, '.' at the top")),
                ("size", models.BigIntegerField(null=True)),
                ("mtime_ns", models.BigIntegerField(null=True)),
                ("sha256", models.TextField(null=True)),
                ("bytes", models.BigIntegerField(null=True)),
                ("lines", models.IntegerField(null=True)),
                ("tokens", models.IntegerField(null=True)),
                ("functions", models.IntegerField(null=True)),
                ("classes", models.IntegerField(null=True)),
                ("imports", models.IntegerField(null=True)),
            ],
            options={
                "db_table": "catalogue_file",
                "indexes": [models.Index(fields=["folder", "package"], name="catalogue_file_package")],
                "constraints": [models.UniqueConstraint(fields=("folder", "path"), name="catalogue_file_path")],
            },
        ),
    ]
