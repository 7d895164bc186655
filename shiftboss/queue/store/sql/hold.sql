-- Lock these jobs for the rest of the transaction, waiting as long as lock_timeout says. Index: primary key.
select id
from shiftboss_job
where id = any (%(ids)s::bigint[])
-- part: within
order by id
for no key update
