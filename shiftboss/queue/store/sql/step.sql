-- step: what an agent is to do next for a roll: what it has in hand on its host, else the first step that is not
-- done of the roll that runs, where that is on its host. With it what the record knows of the program's life after
-- the restart, and of the worker that it is; or of one restarted before that has ended since, unasked.
-- Indexes: shiftboss_roll_step_in_hand, shiftboss_roll_running, shiftboss_process_life; primary keys, and
-- shiftboss_job_running and shiftboss_job_claim for one row each. The table of workers holds those of a day.
with next as materialized (
    (select roll_id, number
    from shiftboss_roll_step
    where host = %(host)s and state in ('draining', 'starting', 'proving'))
    union all
    (select first.roll_id, first.number
    from shiftboss_roll r
    cross join lateral (
        select roll_id, number, host, state
        from shiftboss_roll_step
        where roll_id = r.id and state <> 'done'
        order by number
        limit 1
    ) first
    where r.state = 'running' and first.host = %(host)s and first.state = 'waiting')
    limit 1
)
select s.roll_id, s.number, s.program, s.pool, s.state, r.code_wanted,
    coalesce(extract(epoch from clock_timestamp() - s.moved_at), 0)::double precision,
    s.launcher, s.launcher_after,
    l.launcher, l.ending, l.code, l.signal, l.log, w.id, w.code_version,
    coalesce(w.alive and w.state = 'running' and w.heartbeat_at > w.started_at, false),
    coalesce(w.idle or w.in_use > 0 or exists (
        select from shiftboss_job where state = 'running' and worker_id = w.id), false),
    coalesce(exists (
        select from unnest(w.queues) q (name)
        where exists (select from shiftboss_job where state = 'available' and queue = q.name)), false),
    l.fallen
from next
join shiftboss_roll_step s using (roll_id, number)
join shiftboss_roll r on r.id = s.roll_id
join shiftboss_host h on h.name = s.host
left join lateral (
    select started_at
    from shiftboss_process
    where host = s.host and program = s.program and launcher = s.launcher
    order by started_at desc
    limit 1
) old on true
left join lateral (
    (select launcher, pid, started_at, ending, code, signal, log, null as fallen
    from shiftboss_process
    where s.state in ('starting', 'proving') and host = s.host and program = s.program
        and case when s.launcher_after is null then launcher <> s.launcher else launcher = s.launcher_after end
        -- the clock of the host is not that of the database
        and started_at > coalesce(old.started_at, s.began_at - interval '1 minute')
    order by started_at desc
    limit 1)
    union all
    (select p.launcher, p.pid, p.started_at, p.ending, p.code, p.signal, p.log,
        format('%%s on %%s', p.program, p.host)
    from shiftboss_roll_step e
    join shiftboss_process p on p.host = e.host and p.program = e.program and p.launcher = e.launcher_after
        and p.started_at > e.began_at - interval '1 minute'
    where s.state = 'waiting' and e.roll_id = s.roll_id and e.number < s.number and e.state = 'done'
        and p.ending is not null and not p.asked
    order by e.number
    limit 1)
) l on true
left join lateral (
    select *, heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds) as alive
    from shiftboss_worker
    where host = h.hostname and shiftboss_worker.pid = l.pid
        and started_at > l.started_at - interval '1 minute'
    order by id desc
    limit 1
) w on l.ending is null
