-- The workers of a roll, in their order. Primary key.
select number, host, program, pool, state, launcher, launcher_after, worker_after, code_before, code_after,
    began_at, moved_at, why
from shiftboss_roll_step
where roll_id = %(roll_id)s
order by number
limit %(limit)s
