-- What was seen, and how long that took; `seen` is materialized, so the clock is read after it.
insert into shiftboss_sample (part, at, took_ms, seen)
select %(part)s, clock_timestamp(),
    ceil(extract(epoch from clock_timestamp() - statement_timestamp()) * 1000)::integer, seen.whole
from seen
where exists (select from due)
on conflict (part) do update set at = excluded.at, took_ms = excluded.took_ms, seen = excluded.seen
returning part
