-- scale: the count of a pool's workers that a person has asked a host for is kept.
-- Guard: the command is in hand, under this fence. Primary keys.
insert into shiftboss_scale as s (host, pool, count, workers, set_by, automatic)
select host, pool, count, %(workers)s, asked_by, false
from shiftboss_command
where id = %(command_id)s and fence = %(fence)s and state = 'claimed' and verb = 'scale'
on conflict (host, pool) do update
set count = excluded.count, workers = excluded.workers, set_by = excluded.set_by, set_at = clock_timestamp(),
    automatic = false
returning count
