"""The one Django app of Shiftboss."""

from django.apps import AppConfig


class ShiftbossConfig(AppConfig):
    """`shiftboss` in INSTALLED_APPS."""

    name = "shiftboss"
    label = "shiftboss"
    verbose_name = "Shiftboss"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the system checks, and the Tasks API so that its own backend checks run."""
        import shiftboss.checks
        import shiftboss.compat  # noqa: F401
