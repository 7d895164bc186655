"""A keeper as a program: `python -P -m shiftboss.queue.runtime CONFIG_FD`. Started by `shiftboss_worker`."""

import asyncio
import gc
import logging
import sys
from importlib import import_module

from shiftboss.queue.errors import ShiftbossError
from shiftboss.queue.runtime import logs
from shiftboss.queue.runtime.config import KeeperConfig, read_descriptor
from shiftboss.queue.runtime.keeper import Keeper


def main(config_fd: int) -> int:
    """Run a keeper to its end: 0 after a drain, 1 where it cannot work."""
    logs.configure()
    # What a job needs lives for a moment and is in no cycle: looking for cycles was a tenth of the work.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    config = KeeperConfig.from_json(read_descriptor(config_fd))
    module, _, name = config.client.partition(":")
    client, wakeups = getattr(import_module(module), name)(config)
    try:
        asyncio.run(Keeper(config, client, wakeups).run())
    except (ShiftbossError, RuntimeError, PermissionError) as error:
        logging.getLogger("shiftboss.keeper").error("keeper.refused", extra={"error": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
