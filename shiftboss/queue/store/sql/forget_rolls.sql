-- The agent drops rolls that ended more than 30 days ago. Guard: it is the host's agent. There are few rolls.
with old as (
    delete from shiftboss_roll r
    using shiftboss_host h
    where h.name = %(host)s and h.fence = %(fence)s and h.stopped_at is null
        and r.ended_at < clock_timestamp() - interval '30 days'
    returning r.id
),
steps as (
    delete from shiftboss_roll_step s using old where s.roll_id = old.id
)
select id from old
