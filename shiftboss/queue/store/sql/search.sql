-- A page of the jobs that are searched for, newest first below an id, and how far was looked for them.
-- A window of rows is cut off by an index; only what lies in it is asked anything else: its own limit keeps the planner
-- from asking the whole table, where it thinks that few rows answer. search.py puts conditions that an index serves
-- where a line says "driving", all others where it says "narrowing".
-- Indexes, backwards: primary key, shiftboss_job_quarantined, shiftboss_job_running, shiftboss_job_reason,
-- shiftboss_job_owner, shiftboss_job_batch; shiftboss_finished_id, shiftboss_finished_unusual,
-- shiftboss_finished_owner, shiftboss_finished_batch. For few ids, keys or reruns: primary key, shiftboss_job_key,
-- shiftboss_job_follow_up, shiftboss_job_rerun_of; shiftboss_finished_id, shiftboss_finished_rerun_of.
with edge as materialized (
    select count(*) as looked, min(id) as id
    from (
        (
            select id from shiftboss_job
            where (%(beyond)s::bigint is null or id < %(beyond)s)
                -- driving live
            order by id desc
            limit %(window)s
        )
        union all
        (
            select id from shiftboss_finished
            where (%(beyond)s::bigint is null or id < %(beyond)s)
                -- driving finished
            order by id desc
            limit %(window)s
        )
        order by id desc
        limit %(window)s
    ) ids
),
found as (
    (
-- part: searched_live
        from (
            select * from shiftboss_job
            where (%(beyond)s::bigint is null or id < %(beyond)s) and id >= (select e.id from edge e)
                -- driving live
            order by id desc
            limit %(window)s
        ) looked_at
        where true
            -- narrowing live
        order by id desc
        limit %(limit)s
    )
    union all
    (
-- part: searched_finished
        from (
            select * from shiftboss_finished
            where (%(beyond)s::bigint is null or id < %(beyond)s) and id >= (select e.id from edge e)
                -- driving finished
            order by id desc
            limit %(window)s
        ) looked_at
        where true
            -- narrowing finished
        order by id desc
        limit %(limit)s
    )
    order by id desc
    limit %(limit)s
)
select e.looked, e.id, (
        select enqueued_at from shiftboss_job where id = e.id
        union all
        select enqueued_at from shiftboss_finished where id = e.id
        limit 1),
    null::smallint, f.*
from edge e
left join found f on true
order by f.id desc
