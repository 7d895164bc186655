"""What people did, and what lets them in."""

from django.db import models

from shiftboss.queue.models.window import Window


class Audit(Window):
    """One act of a person. Not managed: the flush after a test must not empty what refuses to be emptied."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField()
    actor_kind = models.TextField()
    actor_id = models.TextField(null=True)
    actor_name = models.TextField()
    via = models.TextField()
    act = models.TextField()
    job_id = models.BigIntegerField(null=True)
    queue = models.TextField(null=True)
    reason = models.TextField()
    jobs = models.IntegerField()
    operation = models.UUIDField()
    request_id = models.TextField(null=True)
    asked = models.JSONField()
    before = models.JSONField()
    after = models.JSONField()

    class Meta(Window.Meta):
        abstract = False
        managed = False
        default_permissions = ("view",)
        app_label = "shiftboss"
        db_table = "shiftboss_audit"


class Token(models.Model):
    """A bearer token of the HTTP API: only the SHA-256 of it is kept, as hexadecimal digits.

    Whoever shows it acts as the user with this primary key. No foreign key: users may live in another database.
    """

    name = models.CharField(max_length=100)
    user_id = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "shiftboss"
        db_table = "shiftboss_token"
