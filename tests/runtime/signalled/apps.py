"""Its configuration."""

from django.apps import AppConfig


class SignalledConfig(AppConfig):
    """Connects when it is ready."""

    name = "tests.runtime.signalled"

    def ready(self) -> None:
        """As Django's documentation has it."""
        from tests.runtime import observers

        observers.connect()
