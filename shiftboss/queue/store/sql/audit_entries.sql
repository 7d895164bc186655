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
-- part: audit_narrowed
