-- The parts that are to be looked at again; sample_*.sql ask once more. Index: shiftboss_sample_pkey.
select wanted.part
from unnest(%(parts)s::text[]) with ordinality wanted (part, place)
left join shiftboss_sample s on s.part = wanted.part
where s.part is null
    or s.at <= clock_timestamp() - make_interval(secs => greatest(
        %(every_seconds)s::double precision, s.took_ms * %(rest)s::double precision / 1000))
order by wanted.place
