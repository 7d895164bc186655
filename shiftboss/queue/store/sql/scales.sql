-- The counts of workers that are kept of a host's pools, or of all hosts. Primary key: a host has few pools.
select host, pool, count, workers, set_by, set_at, automatic,
    extract(epoch from clock_timestamp() - set_at)::double precision
from shiftboss_scale
where %(host)s::text is null or host = %(host)s::text
order by host, pool
limit 1000
