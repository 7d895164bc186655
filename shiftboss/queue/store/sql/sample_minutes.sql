-- sample: what finished per queue and minute within the last half hour: minutes that the histograms know from there,
-- later ones from the jobs. Indexes: shiftboss_histogram_pkey, shiftboss_finished_at (BRIN).
with
-- part: sample_due
span as materialized (
    select greatest(first, coalesce(
        (select max(at) + interval '1 minute' from shiftboss_histogram
        where seconds = 60 and queue = '' and task = '' and at >= first), first)) as known_until, first
    from (
        select date_trunc('minute', statement_timestamp()) - make_interval(mins => %(minutes)s::integer - 1) as first
    ) bounds
    where exists (select from due)
),
finished as (
    select h.queue, h.at, h.completed, h.cancelled + h.discarded as other
    from span, shiftboss_histogram h
    where h.seconds = 60 and h.task = '' and h.queue <> '' and h.at >= span.first and h.at < span.known_until
    union all
    select queue, date_trunc('minute', finished_at), count(*) filter (where state = 'completed'),
        count(*) filter (where state <> 'completed')
    from shiftboss_finished
    where finished_at >= (select known_until from span)
    group by 1, 2
),
seen as materialized (
    select coalesce(
        jsonb_agg(jsonb_build_array(queue, extract(epoch from at)::bigint, completed, other)), '[]') as whole
    from finished
    where completed + other > 0
)
-- part: sample_write
