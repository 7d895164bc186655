-- move: a step of a roll comes into its next state, and the roll ends with its last step, or with one that fails.
-- Guard: the one who moves it is the agent of the step's host, whose lease runs; the step is in the state that it
-- was seen in; all before it have ended; the roll runs, or the step is in hand already: that one is brought to its
-- end, so that no worker stays down. Primary keys.
with held as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
),
ruled as (
    select id
    from shiftboss_roll
    where id = %(roll_id)s and (state = 'running' or %(state)s <> 'waiting')
    for update
),
moved as (
    update shiftboss_roll_step s
    set state = %(to)s, moved_at = clock_timestamp(), began_at = coalesce(s.began_at, clock_timestamp()),
        fence = %(fence)s, launcher = coalesce(%(launcher)s, s.launcher),
        launcher_after = coalesce(%(launcher_after)s, s.launcher_after),
        worker_after = %(worker_after)s, code_after = %(code_after)s, why = %(why)s
    from held, ruled
    where s.roll_id = ruled.id and s.number = %(number)s and s.host = held.name and s.state = %(state)s
        and not exists (
            select from shiftboss_roll_step e
            where e.roll_id = %(roll_id)s and e.number < %(number)s and e.state not in ('done', 'failed'))
    returning s.roll_id, s.number, s.host, s.program, s.state, s.why
),
ended as (
    update shiftboss_roll r
    set state = case moved.state when 'done' then 'done' else 'stopped' end, ended_at = clock_timestamp(),
        why = case when moved.state = 'failed' then
            format('%%s on %%s: %%s', moved.program, moved.host, moved.why) end
    from moved
    where r.id = moved.roll_id and r.state = 'running' and (
        moved.state = 'failed'
        or (moved.state = 'done' and not exists (
            select from shiftboss_roll_step o
            where o.roll_id = moved.roll_id and o.number <> moved.number and o.state <> 'done')))
    returning r.state
)
select number, (select state from ended) from moved
