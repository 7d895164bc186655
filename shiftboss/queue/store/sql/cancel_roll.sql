-- cancel: no further worker of a roll is touched; the one in hand comes back. Guard: it runs. Primary key.
with cancelled as (
    update shiftboss_roll
    set state = 'cancelled', ended_at = clock_timestamp()
    where id = %(roll_id)s and state = 'running'
    returning id
)
select state, exists (select from cancelled) from shiftboss_roll where id = %(roll_id)s
