-- A page of a queue's available jobs in the order in which they are claimed, behind a place, and how far was looked
-- for them. Called by search.py, which puts conditions where a line says so.
-- Indexes: shiftboss_job_claim, in its order, from the place on and again below its priority; then primary key.
with ahead as materialized (
    (
        select id, priority, due_at from shiftboss_job
        where state = 'available' and queue = %(queue)s and priority = %(beyond_priority)s
            and (due_at, id) > (%(beyond_due)s::timestamptz, %(beyond)s::bigint)
        order by due_at, id
        limit %(window)s
    )
    union all
    (
        select id, priority, due_at from shiftboss_job
        where state = 'available' and queue = %(queue)s
            and (%(beyond_priority)s::smallint is null or priority < %(beyond_priority)s)
        order by priority desc, due_at, id
        limit %(window)s
    )
    order by priority desc, due_at, id
    limit %(window)s
),
edge as (
    select id, due_at, priority, (select count(*) from ahead) as looked from ahead
    order by priority, due_at desc, id desc
    limit 1
),
found as (
-- part: searched_live
    from shiftboss_job
    where id = any (array(select id from ahead))
        -- narrowing live
    order by priority desc, due_at, id
    limit %(limit)s
)
select coalesce(e.looked, 0), e.id, e.due_at, e.priority, f.*
from (select) always
left join edge e on true
left join found f on true
order by f.priority desc, f.due_at, f.id
