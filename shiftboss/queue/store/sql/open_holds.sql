-- The holds of a host whose programs an agent still owes something: their stop, or their start. Index:
-- shiftboss_hold_open.
select id, program, released_at is null and until > clock_timestamp(), stopped_at is not null,
    extract(epoch from until - clock_timestamp())::double precision
from shiftboss_hold
where host = %(host)s and taken_up_at is null
order by program
limit 1000
