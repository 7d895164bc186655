-- The agent drops all but the newest holds of each program of its host. Guard: it is the host's agent.
-- Index: shiftboss_hold_program; a host has few programs, and of each a bounded number.
with held as (
    select name from shiftboss_host where name = %(host)s and fence = %(fence)s and stopped_at is null for share
),
ranked as (
    select h.id, row_number() over (partition by h.program order by h.id desc) as place
    from shiftboss_hold h
    join held on held.name = h.host
    where h.taken_up_at is not null
)
delete from shiftboss_hold
where id in (select id from ranked where place > %(keep)s)
returning id
