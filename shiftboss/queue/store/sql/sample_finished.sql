-- sample: the newest %(cap)s finished jobs per queue and state, and how many there are in all by the planner's
-- statistics. Index: shiftboss_finished_id, backwards.
with
-- part: sample_due
newest as materialized (
    select queue, state from shiftboss_finished
    where (select exists (select from due))
    order by id desc
    limit %(cap)s
),
seen as materialized (
    select jsonb_build_object(
        'counts', coalesce((
            select jsonb_agg(jsonb_build_array(queue, state, jobs))
            from (select queue, state, count(*) as jobs from newest group by queue, state) counted), '[]'),
        'capped', (select count(*) from newest) >= %(cap)s,
        'estimate', (
            select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint
            from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = 'shiftboss_finished'::regclass)
    ) as whole
)
-- part: sample_write
