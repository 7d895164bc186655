-- A late or foreign write was refused: keep who offered what, and what is held. The job stays as it is.
insert into shiftboss_event (job_id, seq, at, kind, worker_id, fence, data)
select o.id,
    1 + greatest(
        coalesce(j.event_seq, 0),
        coalesce((select max(e.seq) from shiftboss_event e where e.job_id = o.id), 0)),
    clock_timestamp(), 'write_rejected', %(worker_id)s, o.fence,
    jsonb_build_object(
        'verb', %(verb)s::text, 'fence_offered', o.fence, 'fence_held', coalesce(j.fence, f.fence),
        'worker_held', coalesce(j.worker_id, f.worker_id), 'state', coalesce(j.state, f.state))
from unnest(%(ids)s::bigint[], %(fences)s::bigint[]) as o (id, fence)
left join lateral (select * from shiftboss_job j where j.id = o.id limit 1) j on true
left join lateral (
    select fence, worker_id, state from shiftboss_finished f where f.id = o.id limit 1
) f on true
