-- Jobs per queue and state: live ones exactly, finished ones among the newest %(cap)s.
-- Index: shiftboss_finished_id, backwards.
with newest as materialized (
    select queue, state from shiftboss_finished
    where true
-- part: within
    order by id desc
    limit %(cap)s
),
size as (
    select count(*) as n from newest
)
select queue, state, count(*),
    extract(epoch from clock_timestamp() - min(
        case state when 'available' then due_at when 'running' then started_at end))::double precision,
    false
from shiftboss_job
where true
-- part: within
group by queue, state
union all
select queue, state, count(*), null, (select n from size) >= %(cap)s
from newest
group by queue, state
order by 1, 2
