-- purge: an operator orders that the history before a day be dropped. Guard: the day has begun.
insert into shiftboss_purge (before)
select %(before)s::date
where %(before)s::date <= (clock_timestamp() at time zone 'UTC')::date
on conflict (before) do update set asked_at = clock_timestamp()
returning before
