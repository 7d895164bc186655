-- What the maintainer last saw of the whole, part by part. A handful of rows.
select part, at, extract(epoch from clock_timestamp() - at)::double precision, took_ms, seen::text
from shiftboss_sample
