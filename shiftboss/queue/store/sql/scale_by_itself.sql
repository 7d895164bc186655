-- scale: the agent sets another count of a pool's workers, and has a command in hand that tells of it.
-- Guard: it is the host's agent and its lease runs; the count that holds is the one that it decided upon, and no
-- person has said one within the last %(patience_seconds)s s. Primary keys.
with held as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
),
kept as (
    insert into shiftboss_scale as s (host, pool, count, workers, set_by, automatic)
    select name, %(pool)s, %(count)s, %(workers)s, %(by)s, true
    from held
    on conflict (host, pool) do update
    set count = excluded.count, workers = excluded.workers, set_by = excluded.set_by, set_at = clock_timestamp(),
        automatic = true
    where case when s.workers = excluded.workers then s.count else excluded.workers end = %(before)s
        and (s.automatic or s.set_at < clock_timestamp() - make_interval(secs => %(patience_seconds)s))
    returning host
)
insert into shiftboss_command (
    host, verb, pool, count, asked_by, expires_at, state, claimed_at, fence, progress)
select host, 'scale', %(pool)s, %(count)s, %(by)s, clock_timestamp(), 'claimed', clock_timestamp(), %(fence)s,
    %(why)s
from kept
returning id
