-- quarantine: the maintainer holds back jobs that have waited since `seconds` for a worker that knows their
-- task, though workers serve their queue all that time and none has known it.
-- Guard: available, row lock never waited for. Index: shiftboss_job_claim.
with known as materialized (
    select distinct unnest(tasks) as task
    from shiftboss_worker
    where heartbeat_at > clock_timestamp() - make_interval(secs => %(seconds)s)
),
served as materialized (
    select distinct unnest(queues) as queue
    from shiftboss_worker
    where state = 'running'
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
        and started_at <= clock_timestamp() - make_interval(secs => %(seconds)s)
),
unknown as materialized (
    select id
    from shiftboss_job
    where state = 'available'
        and queue = any (array(select queue from served))
        and due_at <= clock_timestamp() - make_interval(secs => %(seconds)s)
        and task <> all (array(select task from known))
    order by id
    limit %(limit)s
    for no key update skip locked
),
held as (
    update shiftboss_job j
    set state = 'quarantined', quarantine_reason = 'unknown_task', quarantined_at = clock_timestamp(),
        error_code = 'unknown_task',
        error_message = format(
            'no live worker has known the task %%s for %%s s', j.task, %(seconds)s::double precision)
    where j.id = any (array(select id from unknown))
    returning j.id, j.fence, j.slot_id
),
rested as (
    select id from held
),
-- part: awaited
,
leaving as (
    select id, fence, slot_id from held where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, (select count(*) from awaited), (select count(*) from woken) from held
