-- How programs of hosts fared: the version that ran last, how each ended last, and its ends by hours counted back
-- from now, with those that nobody had asked for and that were no success. One that ended within a day began within
-- it, or is the newest of those that began before.
-- Index: shiftboss_process_life, backwards, for each program that is asked for.
select p.host, p.program, newest.code_version, ended.ended_at, ended.ending, ended.code, ended.signal, ended.asked,
    ended.uptime_seconds, hours.counted::text
from unnest(%(hosts)s::text[], %(programs)s::text[]) p (host, program)
left join lateral (
    select code_version
    from shiftboss_process
    where host = p.host and program = p.program
    order by started_at desc, launcher desc
    limit 1
) newest on true
left join lateral (
    select ended_at, ending, code, signal, asked, uptime_seconds
    from shiftboss_process
    where host = p.host and program = p.program and ended_at is not null
    order by started_at desc, launcher desc
    limit 1
) ended on true
left join lateral (
    select jsonb_agg(jsonb_build_array(hours_ago, ends, wrong)) as counted
    from (
        select floor(extract(epoch from clock_timestamp() - ended_at) / 3600)::integer as hours_ago, count(*) as ends,
            count(*) filter (where not asked and code is distinct from 0) as wrong
        from (
            (
                select ended_at, asked, code
                from shiftboss_process
                where host = p.host and program = p.program and started_at > clock_timestamp() - interval '24 hours'
                order by started_at desc, launcher desc
                limit 500
            )
            union all
            (
                select ended_at, asked, code
                from shiftboss_process
                where host = p.host and program = p.program and started_at <= clock_timestamp() - interval '24 hours'
                order by started_at desc, launcher desc
                limit 1
            )
        ) lately
        where ended_at > clock_timestamp() - interval '24 hours'
        group by 1
    ) by_hour
) hours on true
