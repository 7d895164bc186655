-- Pages that the BRIN indexes do not know yet, of the last two days of the history and of the histograms: so that a
-- look at the last minutes reads no more than these.
select brin_summarize_new_values(i.inhrelid)
from pg_inherits i
join pg_index x on x.indexrelid = i.inhrelid
join pg_class t on t.oid = x.indrelid
where i.inhparent in ('shiftboss_finished_at'::regclass, 'shiftboss_attempt_at'::regclass)
    and right(t.relname, 8) in (
        to_char(clock_timestamp() at time zone 'UTC', 'YYYYMMDD'),
        to_char(clock_timestamp() at time zone 'UTC' - interval '1 day', 'YYYYMMDD'))
union all
select brin_summarize_new_values('shiftboss_histogram_at'::regclass)
