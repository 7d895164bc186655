-- What runs in these workers, the longest-running first, at most so many of each, and how many there are.
-- Looked at are the first `budget` running jobs by id. Indexes: shiftboss_job_running, primary key.
with looked_at as materialized (
    select id, worker_id, started_at
    from shiftboss_job
    where state = 'running'
-- part: scope
    order by id
    limit %(budget)s
),
placed as (
    select id, worker_id, row_number() over (partition by worker_id order by started_at, id) as place,
        count(*) over (partition by worker_id) as jobs
    from looked_at
    where worker_id = any (%(workers)s::bigint[])
)
select j.worker_id, j.id, j.queue, j.task, j.fence,
    extract(epoch from clock_timestamp() - j.started_at)::double precision,
    extract(epoch from j.lease_expires_at - clock_timestamp())::double precision,
    j.progress::text, j.cancel_requested_at is not null, p.jobs
from placed p
join shiftboss_job j on j.id = p.id
where p.place <= %(per_worker)s
order by p.worker_id, p.place
