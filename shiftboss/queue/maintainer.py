"""The maintainer: stage, reap, partitions and the rest of the upkeep, each a `run_once()` on the one Loop.

What the console shows of the whole is looked at here too (`sampler.py`).

Safe in many processes at once: each pass takes rows with `skip locked`. A program as
`python -P -m shiftboss.queue.maintainer CONFIG_FD`, started by `shiftboss_maintainer`; no Django inside.
"""

import asyncio
import logging
import signal
import sys

from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection
from shiftboss.queue.errors import ShiftbossError, StoreUnavailable
from shiftboss.queue.runtime import logs
from shiftboss.queue.runtime.config import KeeperConfig, read_descriptor
from shiftboss.queue.runtime.loop import Loop, wait_for_event
from shiftboss.queue.sampler import Sampler
from shiftboss.queue.store import backfill, partitions, upkeep, workers
from shiftboss.queue.store.schema import check_schema

log = logging.getLogger("shiftboss.maintainer")

SYSTEM = System()
STAGE_BATCH = 5000
REAP_BATCH = 1000
EXPIRE_BATCH = 1000
PRUNE_SECONDS = 60.0
PARTITION_SECONDS = 3600.0
PARTITION_AGAIN_SECONDS = 60.0
FORGET_SECONDS = 600.0


class Maintainer:
    """The duties of the upkeep. Each answers whether there is more to do at once.

    Those of the history have a connection of their own: they may have to wait for locks and old snapshots.
    """

    def __init__(self, config: KeeperConfig) -> None:
        self._config = config
        self._connection = Connection(config.dsn, name="maintainer")
        self._history = Connection(config.dsn, name="maintainer (history)")
        self._sampler = Sampler(config.dsn)

    async def stage(self) -> bool:
        """Make due jobs available."""
        return await self._connection.run(upkeep.stage(authority=SYSTEM, limit=STAGE_BATCH)) >= STAGE_BATCH

    async def feed(self) -> bool:
        """Enqueue what backfills have room for."""
        fed = await self._connection.run(backfill.feed(authority=SYSTEM))
        if fed:
            log.info("backfill.fed", extra={"jobs": fed})
        return False

    async def expire(self) -> bool:
        """Cancel jobs that still wait after their deadline."""
        late = await self._connection.run(upkeep.expire(authority=SYSTEM, limit=EXPIRE_BATCH))
        if late:
            log.info("job.cancelled", extra={"jobs": late, "cause": "deadline"})
        return late == EXPIRE_BATCH

    async def reap(self) -> bool:
        """Take jobs from expired leases."""
        reaped = await self._connection.run(upkeep.reap(authority=SYSTEM, limit=REAP_BATCH))
        for job in reaped:
            fields = {"job": job.id, "fence": job.fence, "worker": job.worker_id, "state": str(job.state)}
            log.warning("job.reaped", extra=fields)
        return len(reaped) == REAP_BATCH

    async def quarantine_unknown(self) -> bool:
        """Hold back jobs whose task nobody has known for long."""
        seconds = self._config.unknown_task_seconds
        held = await self._connection.run(upkeep.quarantine_unknown(authority=SYSTEM, seconds=seconds))
        if held:
            log.warning("job.quarantined", extra={"jobs": held, "reason": "unknown_task"})
        return bool(held)

    async def partitions(self) -> None:
        """Make the day partitions of the next days; those that a lock kept back are tried again soon."""
        days = self._config.partition_days_ahead
        while True:
            answer = await self._history.run(partitions.make_partitions(authority=SYSTEM, days_ahead=days))
            if answer.made:
                log.info("partitions.made", extra={"count": len(answer.made)})
            if not answer.pending:
                return
            log.warning("partitions.locked", extra={"count": len(answer.pending)})
            await asyncio.sleep(PARTITION_AGAIN_SECONDS)

    async def prune(self) -> None:
        """Drop days of the history that are past the retention."""
        config = self._config
        answer = await self._history.run(partitions.prune(authority=SYSTEM, retention_days=config.retention_days))
        if answer.dropped:
            log.info("partitions.dropped", extra={"count": len(answer.dropped)})
        if answer.pending:
            log.warning("partitions.pending", extra={"count": len(answer.pending)})
        for parent, day, reason in answer.failed:
            log.error("partitions.kept", extra={"table": parent, "day": day.isoformat(), "error": reason})

    async def discard_held_too_long(self) -> None:
        """Discard what is quarantined for longer than its retention."""
        seconds = self._config.quarantine_retention_days * 86_400
        discarded = await self._history.run(upkeep.discard_held_too_long(authority=SYSTEM, seconds=seconds))
        if discarded:
            log.info("job.discarded", extra={"jobs": discarded, "reason": "quarantine_retention"})

    async def forget_workers(self) -> None:
        """Drop workers that were last seen more than a day ago."""
        await self._connection.run(workers.forget_workers(authority=SYSTEM))

    async def open(self, stop: asyncio.Event) -> None:
        """Wait for the database. Raises SchemaTooOld or UnsupportedDatabase."""
        while not stop.is_set():
            try:
                await self._connection.run(check_schema())
                return
            except StoreUnavailable as error:
                log.warning("maintainer.store_unavailable", extra={"error": str(error)})
                await wait_for_event(stop, 2.0)

    async def run(self) -> None:
        """Do all duties until SIGTERM or SIGINT."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await self.open(stop)
        log.info("maintainer.started")
        config = self._config
        unknown_seconds = min(60.0, config.unknown_task_seconds / 2)
        loops = (
            Loop("stage", self.stage, every_seconds=config.stage_seconds),
            Loop("feed", self.feed, every_seconds=config.stage_seconds),
            Loop("reap", self.reap, every_seconds=config.reap_seconds),
            Loop("quarantine_unknown", self.quarantine_unknown, every_seconds=unknown_seconds),
            Loop("expire", self.expire, every_seconds=config.stage_seconds),
            Loop("prune", self.prune, every_seconds=PRUNE_SECONDS),
            Loop("discard_held_too_long", self.discard_held_too_long, every_seconds=PRUNE_SECONDS),
            Loop("partitions", self.partitions, every_seconds=PARTITION_SECONDS),
            Loop("forget_workers", self.forget_workers, every_seconds=FORGET_SECONDS),
            *self._sampler.loops(),
        )
        tasks = [asyncio.create_task(loop.run(stop)) for loop in loops]
        await stop.wait()
        await asyncio.wait(tasks, timeout=5)
        for task in tasks:
            task.cancel()
        await self._connection.close()
        await self._history.close()
        await self._sampler.close()
        log.info("maintainer.stopped")


def main(config_fd: int) -> int:
    """Run the maintainer to its end: 0 after a stop, 1 where it cannot work."""
    logs.configure()
    config = KeeperConfig.from_json(read_descriptor(config_fd))
    try:
        asyncio.run(Maintainer(config).run())
    except ShiftbossError as error:
        log.error("maintainer.refused", extra={"error": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
