-- A keeper announces itself; the id that comes back stands in its leases.
insert into shiftboss_worker (
    pool, host, pid, code_version, queues, tasks, processes, threads, lease_seconds, heartbeat_seconds)
values (
    %(pool)s, %(host)s, %(pid)s, %(code_version)s, %(queues)s, %(tasks)s, %(processes)s, %(threads)s,
    %(lease_seconds)s, %(heartbeat_seconds)s)
returning id
