"""`python -P -m shiftboss.testing.executor ORDERS`: a worker's child, on the databases of a test run.

An executor, or the observers' process, as the orders say.
"""

import json
import os
import sys

import django


def main() -> None:
    """Load the project, turn it to the test's databases, and do as ordered."""
    django.setup()
    from django.db import connections

    for alias, name in json.loads(os.environ["SHIFTBOSS_TEST_DATABASES"]).items():
        connections[alias].settings_dict["NAME"] = name
    from shiftboss.queue import telling
    from shiftboss.queue.handlers import DjangoHandlers
    from shiftboss.queue.runtime import executor

    if "observers" in json.loads(sys.argv[1]):
        telling.main(sys.argv[1])
    else:
        executor.main(sys.argv[1], DjangoHandlers)


if __name__ == "__main__":
    main()
