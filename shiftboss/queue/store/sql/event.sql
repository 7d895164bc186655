-- event: a worker's handlers tell what happened; each event gets its job's next number, in the order given.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Indexes: primary key, shiftboss_event_job. The rows are
-- locked (lock.sql), and the jobs' events are numbered here alone (number_events_now.sql).
with outcome as materialized (
    select *
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(names)s::text[], %(data)s::text[]) with ordinality
        as o (id, fence, name, data, place)
),
told as (
    select j.id, j.fence, o.name, o.data, row_number() over (partition by j.id order by o.place) as place,
        greatest(
            j.event_seq, coalesce((select max(e.seq) from shiftboss_event e where e.job_id = j.id), 0)) as last_seq
    from shiftboss_job j, outcome o
    where
-- part: guard
)
insert into shiftboss_event (job_id, seq, at, kind, worker_id, fence, data)
select id, last_seq + place, clock_timestamp(), 'event', %(worker_id)s, fence,
    jsonb_build_object('name', name, 'data', data::jsonb)
from told
returning job_id, fence
