-- Where jobs stand that an act did not change, and who holds their keys. Indexes: primary key,
-- shiftboss_finished_id, shiftboss_job_key.
select i.id, coalesce(j.state, f.state), h.id
from unnest(%(ids)s::bigint[]) as i (id)
left join lateral (
    select j.state, j.key from shiftboss_job j
    where j.id = i.id
-- part: within
    limit 1
) j on true
left join lateral (
    select j.state, j.key from shiftboss_finished j
    where j.id = i.id
-- part: within
    limit 1
) f on true
left join lateral (
    select h.id from shiftboss_job h
    where h.key = coalesce(j.key, f.key) and h.id <> i.id and h.state <> 'quarantined' and not h.follow_up
    limit 1
) h on true
