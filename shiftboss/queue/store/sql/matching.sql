-- Ids of live jobs that a bulk act means, from the newest down: away from where workers claim.
-- Index: primary key, backwards.
select id
from shiftboss_job
where (%(before_id)s::bigint is null or id < %(before_id)s)
    and (%(queue)s::text is null or queue = %(queue)s)
    and (%(task)s::text is null or task = %(task)s)
    and state = any (%(states)s::text[])
-- part: scope
order by id desc
limit %(limit)s
