-- The newest quarantined jobs of each reason, by task and error: how many, first and last held, and the newest one
-- as an example. Index: shiftboss_job_reason, backwards, %(looked)s rows a reason; primary key.
with looked as materialized (
    select r.reason, j.id, j.task, j.error_fingerprint, j.quarantined_at
    from unnest(%(reasons)s::text[]) as r (reason)
    cross join lateral (
        select id, task, error_fingerprint, quarantined_at
        from (
            select id, task, error_fingerprint, quarantined_at, queue, owner
            from shiftboss_job
            -- an equal reason would be no order, and another index chosen that finds it nowhere
            where state = 'quarantined' and quarantine_reason between r.reason and r.reason
            order by quarantine_reason desc, id desc
            limit %(looked)s
        ) newest
        where true
-- part: scope
    ) j
),
sizes as (
    select reason, count(*) as jobs, min(quarantined_at) as first, max(quarantined_at) as last
    from looked
    group by reason
),
grouped as (
    select reason, task, error_fingerprint, count(*) as jobs, min(quarantined_at) as first,
        max(quarantined_at) as last, max(id) as newest,
        row_number() over (partition by reason order by count(*) desc, max(id) desc) as place,
        count(*) over (partition by reason) as groups
    from looked
    group by reason, task, error_fingerprint
)
select g.reason, g.task, g.error_fingerprint, g.jobs, g.first, g.last, g.newest, j.queue, j.error_type,
    j.error_message, j.runs, s.jobs, s.first, s.last, g.groups
from grouped g
join sizes s on s.reason = g.reason
cross join lateral (
    select queue, error_type, left(error_message, 500) as error_message, failures + losses as runs
    from shiftboss_job
    where id = g.newest
    limit 1
) j
where g.place <= %(shown)s
order by g.reason, g.place
