"""`django shiftboss_observers ORDERS`: the observers' process. Started by a keeper, of no use by hand."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Tells the project's observers what the keeper at the other end of a socket says."""

    help = "Tell observers what a worker does. Started by shiftboss_worker; of no use by hand."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What the keeper says."""
        parser.add_argument("orders")

    def handle(self, *_: Any, orders: str, **__: Any) -> None:
        """Until the keeper goes away."""
        from shiftboss.queue.telling import main

        main(orders)
