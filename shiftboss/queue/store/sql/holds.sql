-- Holds, the newest first: of a program of a host, or of all; those that are open, or all.
-- Indexes: shiftboss_hold_program where the program is named, shiftboss_hold_open for the open ones, else the primary
-- key.
select id, host, program, pool, step, held_at, until, evidence::text, poison_job, stopped_at, released_at, released_as,
    released_by, taken_up_at, released_at is null and until > clock_timestamp()
from shiftboss_hold
where (%(host)s::text is null or host = %(host)s::text)
    and (%(program)s::text is null or program = %(program)s::text)
    and (not %(only_open)s or taken_up_at is null)
order by id desc
limit %(limit)s
