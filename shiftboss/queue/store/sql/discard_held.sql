-- discard: an operator, or the system after the quarantine's retention, gives quarantined jobs up for good.
-- Guard: quarantined, within the authority, for the system also for how long; row locks never waited for.
-- Index: primary key.
with picked as materialized (
    select j.id
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
        and j.state = 'quarantined'
        and (%(seconds)s::double precision is null
            or j.quarantined_at < clock_timestamp() - make_interval(secs => %(seconds)s))
    order by j.id
    for no key update skip locked
),
ended as (
    delete from shiftboss_job j
    where j.id = any (array(select id from picked))
    returning j.*, 'discarded' as final_state, null::bigint as final_worker, null::text as new_cause,
        null::text as result, null::integer as run_ms, null::text as new_code, null::text as new_type,
        null::text as new_message, null::text as new_fingerprint
),
rested as (
    select id from ended
),
-- part: moved
select id, 'quarantined', 'discarded', (select count(*) from awaited) from moved
