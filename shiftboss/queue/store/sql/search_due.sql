-- A page of jobs that wait for their time, the next due first behind a place, and how far was looked for them.
-- Called by search.py, which puts conditions where a line says so. A job that follows another waits for no time.
-- Indexes: shiftboss_job_due, in its order; then primary key.
with ahead as materialized (
    select id, due_at from shiftboss_job
    where state in ('scheduled', 'retryable') and not follow_up
        and (%(beyond_due)s::timestamptz is null or (due_at, id) > (%(beyond_due)s, %(beyond)s))
    order by due_at, id
    limit %(window)s
),
edge as (
    select id, due_at, (select count(*) from ahead) as looked from ahead
    order by due_at desc, id desc
    limit 1
),
found as (
-- part: searched_live
    from shiftboss_job
    where id = any (array(select id from ahead))
        -- narrowing live
    order by due_at, id
    limit %(limit)s
)
select coalesce(e.looked, 0), e.id, e.due_at, null::smallint, f.*
from (select) always
left join edge e on true
left join found f on true
order by f.due_at, f.id
