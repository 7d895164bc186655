-- order: a person orders a worker to drain, or to stop at once. Its own channel tells it, and its next heartbeat.
-- Guard: it lives, serves no queue beyond those of the one who orders, and what was ordered of it before is not as
-- much: stop follows drain, never the other way.
-- The row of a worker whose order stands already is not changed. Index: primary key.
with given as (
    update shiftboss_worker
    set ordered = %(word)s, ordered_by = %(by)s, ordered_at = clock_timestamp()
    where id = %(worker_id)s and state <> 'stopped'
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
        and (ordered is null or (ordered = 'drain' and %(word)s = 'stop'))
        and (%(within)s::text[] is null or queues <@ %(within)s::text[])
    returning id
),
told as (
    select pg_notify('shiftboss_worker_' || id, %(word)s) from given
)
-- As it was before, read at the same moment.
select id, pool, host, pid, state, ordered,
    state <> 'stopped' and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds),
    %(within)s::text[] is null or queues <@ %(within)s::text[],
    exists (select from given), (select count(*) from told)
from shiftboss_worker
where id = %(worker_id)s
