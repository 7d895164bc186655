"""A worker within a Django program: from the project's settings to a `Worker` over PostgreSQL."""

from shiftboss.queue.clients.local import connect
from shiftboss.queue.handlers import DjangoHandlers
from shiftboss.queue.launch import apply_settings, keeper_config, reach_database
from shiftboss.queue.runtime.worker import Worker
from shiftboss.queue.store.schema import check_schema
from shiftboss.queue.store.statement import run


def worker_of_settings(pool: str = "default", *, threads: int | None = None, prefetch: int = 0) -> Worker:
    """A `Worker` within this process for the queues of a pool, over PostgreSQL and with the project's own tasks.

    Leases, heartbeats and polls are those of `SHIFTBOSS`; without `threads`, as many as an executor of the pool
    has. What the settings say of queues' limits is applied. Raises ConfigError for a pool that is not in the
    settings, UnsupportedDatabase or SchemaTooOld where the database cannot serve, StoreUnavailable where it
    cannot be reached.
    """
    config = keeper_config(pool)
    reach_database()
    run(check_schema())
    apply_settings()
    client, wakeups = connect(config)
    return Worker(
        client,
        DjangoHandlers(),
        wakeups=wakeups,
        queues=config.queues,
        threads=config.threads if threads is None else threads,
        prefetch=prefetch,
        lease_seconds=config.lease_seconds,
        heartbeat_seconds=config.heartbeat_seconds,
        poll_seconds=config.poll_seconds,
    )
