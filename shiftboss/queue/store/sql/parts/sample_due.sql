-- Whether this part of the whole is to be looked at: never yet, or long enough ago, and nobody else is at it. One that
-- has said that more is left only rests for what it took.
due as materialized (
    select 1 where not exists (select from shiftboss_sample where part = %(part)s)
    union all
    select 1 from (
        select from shiftboss_sample
        where part = %(part)s
            and at <= clock_timestamp() - make_interval(secs => greatest(
                case when (seen ->> 'more')::boolean then 0 else %(every_seconds)s::double precision end,
                took_ms * %(rest)s::double precision / 1000))
        for update skip locked
    ) held
),
