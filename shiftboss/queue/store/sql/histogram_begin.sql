-- histograms.write: the minutes that are to be written now, if it is time and nobody else is at it, and whether more
-- are left after them. The last ten that are written are written again, for commits that came late.
-- Indexes: shiftboss_sample_pkey, shiftboss_histogram_pkey, shiftboss_finished_id.
with
-- part: sample_due
now as materialized (
    select date_trunc('minute', clock_timestamp()) as minute
    where exists (select from due)
),
known as materialized (
    select max(at) + interval '1 minute' as until
    from shiftboss_histogram
    where seconds = 60 and queue = '' and task = ''
),
start as materialized (
    select minute, greatest(
        minute - make_interval(days => %(days)s),
        coalesce(
            (select least(until, minute) - interval '10 minutes' from known where until is not null),
            -- the first job of the history, or nothing yet
            (select least(date_trunc('minute', finished_at), minute - interval '10 minutes')
            from shiftboss_finished order by id limit 1),
            minute - interval '10 minutes')) as since
    from now
)
select since, least(minute, until), least(minute, until) < minute
from (
    select since, minute, date_trunc('hour', since + interval '10 minutes') + interval '1 hour' as until from start
) batch
