-- take: an agent becomes the one of its host. Guard: no other's lease runs. Index: primary key.
-- The time since the last agent's last word is a gap, unless that one went in order and this is the next moment.
insert into shiftboss_host as h (name, hostname, pid, home, code_version, lease_seconds)
values (%(name)s, %(hostname)s, %(pid)s, %(home)s, %(code_version)s, %(lease_seconds)s)
on conflict (name) do update
set fence = h.fence + 1, hostname = excluded.hostname, pid = excluded.pid, home = excluded.home,
    code_version = excluded.code_version, lease_seconds = excluded.lease_seconds,
    started_at = clock_timestamp(), heartbeat_at = clock_timestamp(), stopped_at = null,
    gap_from = coalesce(h.stopped_at, h.heartbeat_at), gap_until = clock_timestamp()
where h.stopped_at is not null
    or h.heartbeat_at <= clock_timestamp() - make_interval(secs => h.lease_seconds)
returning fence
