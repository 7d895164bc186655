-- Backfills with how far they are, the newest first: each item is counted once. What has ended and was not noted
-- yet is looked up. Indexes: primary keys, shiftboss_backfill_item_live, shiftboss_finished_id.
select b.id, b.name, b.owner, b.task, b.queue, b.priority, b.concurrency, b.created_at, b.paused_at,
    noted.waiting + going.waiting, going.live, going.quarantined, noted.completed + going.completed,
    noted.cancelled + going.cancelled, noted.discarded + going.discarded
from (
    select *
    from shiftboss_backfill
    where (%(id)s::bigint is null or id = %(id)s)
        and (%(before_id)s::bigint is null or id < %(before_id)s)
        and (%(owner)s::text is null or owner = %(owner)s)
-- part: scope
    order by id desc
    limit %(limit)s
) b
cross join lateral (
    select count(*) filter (where i.job_id is null and i.outcome is null) as waiting,
        count(*) filter (where i.outcome = 'completed') as completed,
        count(*) filter (where i.outcome = 'cancelled') as cancelled,
        count(*) filter (where i.outcome = 'discarded') as discarded
    from shiftboss_backfill_item i
    where i.backfill_id = b.id
) noted
cross join lateral (
    select count(*) filter (where stands = 'waiting') as waiting,
        count(*) filter (where stands = 'live') as live,
        count(*) filter (where stands = 'quarantined') as quarantined,
        count(*) filter (where stands = 'completed') as completed,
        count(*) filter (where stands = 'cancelled') as cancelled,
        count(*) filter (where stands = 'discarded') as discarded
    from (
        select case
            when j.state = 'quarantined' and i.again then 'waiting'
            when j.state = 'quarantined' then 'quarantined'
            when j.id is not null then 'live'
            else coalesce(
                (select f.state from shiftboss_finished f where f.id = i.job_id limit 1), 'discarded')
            end as stands
        from shiftboss_backfill_item i
        left join shiftboss_job j on j.id = i.job_id
        where i.backfill_id = b.id and i.job_id is not null and i.outcome is null
    ) counted
) going
order by b.id desc
