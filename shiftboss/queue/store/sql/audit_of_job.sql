-- Acts on one job, the newest first: on it alone, and on many that have changed it; narrowed further among the newest
-- `reach` of those. All of them are found before the newest are taken: of few that are asked for the planner would hope
-- to meet them soon on its way through the whole audit.
-- Indexes: shiftboss_audit_job, shiftboss_audit_jobs.
with known as materialized (
    select *
    from shiftboss_audit
    where (job_id = %(job_id)s or after -> 'ids' @> to_jsonb(%(job_id)s::bigint))
        and (%(queue)s::text is null or queue = %(queue)s)
        and (%(before_id)s::bigint is null or id < %(before_id)s)
),
newest as (
    select * from known order by id desc limit %(reach)s
)
select
    -- as in parts/audit_shown.sql; of a rerun of many with the new job of this one
    id, at, actor_kind, actor_id, actor_name, via, act, job_id, queue, reason, jobs, operation, request_id,
    (asked - 'ids')::text, before::text, (after - array['ids', 'left', 'new'] || coalesce((
        select jsonb_build_object('new_job_id', made -> 1)
        from jsonb_array_elements(after -> 'new') made
        where made -> 0 = to_jsonb(%(job_id)s::bigint)
        limit 1), '{}'))::text
-- part: audit_narrowed
