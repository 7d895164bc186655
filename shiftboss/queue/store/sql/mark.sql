-- marks.note: code versions that were never seen before, and workers that fell silent without a goodbye.
-- Reads all workers: those of a day. By primary key.
insert into shiftboss_mark (kind, subject, at, facts)
select 'deploy', code_version, min(started_at), jsonb_build_object('pools', jsonb_agg(distinct pool))
from shiftboss_worker
where code_version is not null
group by code_version
union all
select 'worker_lost', id::text, heartbeat_at + make_interval(secs => lease_seconds),
    jsonb_build_object('pool', pool, 'host', host, 'pid', pid)
from shiftboss_worker
where state <> 'stopped' and heartbeat_at < clock_timestamp() - make_interval(secs => lease_seconds)
on conflict (kind, subject) do nothing
returning kind
