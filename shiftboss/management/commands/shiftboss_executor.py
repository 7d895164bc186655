"""`django shiftboss_executor ORDERS`: an executor. Started by a keeper, of no use by hand."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Loads the project's tasks and runs jobs for the keeper at the other end of a socket."""

    help = "Run handlers for a keeper. Started by shiftboss_worker; of no use by hand."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What the keeper says."""
        parser.add_argument("orders")

    def handle(self, *_: Any, orders: str, **__: Any) -> None:
        """Ends the process itself."""
        from shiftboss.queue.handlers import DjangoHandlers, forget_connections
        from shiftboss.queue.runtime.executor import main

        os.register_at_fork(after_in_child=forget_connections)
        main(orders, DjangoHandlers)
