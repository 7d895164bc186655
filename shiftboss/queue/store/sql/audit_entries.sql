-- Acts, the newest first: of a queue by its index, narrowed further among the newest `reach` of those.
-- Indexes: primary key, shiftboss_audit_queue.
with newest as (
    select *
    from shiftboss_audit
    where (%(queue)s::text is null or queue = %(queue)s)
        and (%(before_id)s::bigint is null or id < %(before_id)s)
    order by id desc
    limit %(reach)s
)
select
-- part: audit_shown
from newest
where (%(act)s::text is null or act = %(act)s)
    and (%(via)s::text is null or via = %(via)s)
-- part: audit_within
    and (%(actor)s::text is null or position(lower(%(actor)s) in lower(actor_name)) > 0)
order by id desc
limit %(limit)s
