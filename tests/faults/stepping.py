"""A keeper and an executor on a host whose clock steps by hours at every look, back and forth.

python -P -m tests.faults.stepping ORDERS
"""

import itertools
import sys
import time

from shiftboss.queue.clients import local
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.executor import main
from shiftboss.queue.runtime.ports import QueueClient, Wakeups

HOURS = (6, -48, 0, 24 * 365, -6)


def step_clock() -> None:
    """From now on `time.time` is hours ahead, then behind."""
    real, hours = time.time, itertools.cycle(HOURS)
    vars(time)["time"] = lambda: real() + 3600 * next(hours)


def connect(config: KeeperConfig) -> tuple[QueueClient, Wakeups]:
    """As the ordinary client."""
    step_clock()
    return local.connect(config)


if __name__ == "__main__":
    from tests.faults.plain import functions

    step_clock()
    main(sys.argv[1], functions)
