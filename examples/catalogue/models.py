"""What the jobs write down: a row for each source file, sums for each package, one overview."""

from django.db import models


class SourceFile(models.Model):
    """A source file: `scan` writes where it is, its job writes the rest.

    `sha256` is empty until the job has read the file; the counts stay empty when it cannot be parsed.
    """

    folder = models.TextField()
    path = models.TextField(help_text="relative to the folder, with forward slashes")
    package = models.TextField(help_text="the path's own folder, '.' at the top")
    size = models.BigIntegerField(null=True)
    mtime_ns = models.BigIntegerField(null=True)
    sha256 = models.TextField(null=True)
    bytes = models.BigIntegerField(null=True)
    lines = models.IntegerField(null=True)
    tokens = models.IntegerField(null=True)
    functions = models.IntegerField(null=True)
    classes = models.IntegerField(null=True)
    imports = models.IntegerField(null=True)

    class Meta:
        db_table = "catalogue_file"
        constraints = [models.UniqueConstraint(fields=["folder", "path"], name="catalogue_file_path")]
        indexes = [models.Index(fields=["folder", "package"], name="catalogue_file_package")]

    def __str__(self) -> str:
        return f"{self.folder}/{self.path}"


class Sums(models.Model):
    """What a set of files adds up to."""

    files = models.IntegerField(default=0)
    hashed = models.IntegerField(default=0)
    parsed = models.IntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    lines = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    functions = models.BigIntegerField(default=0)
    classes = models.BigIntegerField(default=0)
    imports = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class Package(Sums):
    """The sums of one package."""

    folder = models.TextField()
    package = models.TextField()

    class Meta:
        db_table = "catalogue_package"
        constraints = [models.UniqueConstraint(fields=["folder", "package"], name="catalogue_package_name")]

    def __str__(self) -> str:
        return f"{self.folder}/{self.package}"


class Overview(Sums):
    """The sums of all; one row. `turn` is the number of the only job that may rebuild it next."""

    turn = models.BigIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    rebuilt_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "catalogue_overview"

    def __str__(self) -> str:
        return f"overview, turn {self.turn}"
