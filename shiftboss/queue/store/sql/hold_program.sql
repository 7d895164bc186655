-- hold: the agent holds a program of its host back that crashes in a loop, for so many seconds.
-- Guard: it is the host's agent, whose lease runs; no hold was made of the program since the one (`after`) that it has
-- judged by, and none is open. Indexes: primary key of the host, shiftboss_hold_program, shiftboss_hold_open.
with held as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
)
insert into shiftboss_hold (host, program, pool, step, until, evidence, fence)
select name, %(program)s, %(pool)s, %(step)s, clock_timestamp() + make_interval(secs => %(seconds)s),
    %(evidence)s::jsonb, %(fence)s
from held
where not exists (
    select from shiftboss_hold h where h.host = %(host)s and h.program = %(program)s and h.id > %(after)s)
on conflict (host, program) where taken_up_at is null do nothing
returning id
