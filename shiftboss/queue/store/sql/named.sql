-- Where jobs stand that a person has chosen, and who holds their keys. Indexes: primary key, shiftboss_finished_id,
-- shiftboss_job_key.
select i.id, coalesce(j.queue, f.queue), coalesce(j.task, f.task), coalesce(j.state, f.state),
    coalesce(j.follow_up, false), h.id
from unnest(%(ids)s::bigint[]) as i (id)
left join lateral (
    select j.queue, j.task, j.state, j.key, j.follow_up from shiftboss_job j
    where j.id = i.id
-- part: scope
    limit 1
) j on true
left join lateral (
    select f.queue, f.task, f.state, f.key from shiftboss_finished f
    where f.id = i.id
-- part: scope
    limit 1
) f on true
left join lateral (
    select h.id from shiftboss_job h
    where h.key = coalesce(j.key, f.key) and h.id <> i.id and h.state <> 'quarantined' and not h.follow_up
    limit 1
) h on true
order by i.id
