-- How many live jobs a bulk act would mean now.
select count(*)
from shiftboss_job
where (%(queue)s::text is null or queue = %(queue)s)
    and (%(task)s::text is null or task = %(task)s)
    and state = any (%(states)s::text[])
-- part: scope
