-- Lives of programs, the newest first: of all, of a host, or of a program of a host. Their last lines, which are
-- long, only where they are asked for: of all, of one life (`log_of`), or of the last one of a program that nobody
-- had asked to end (`log_of` 0).
-- Indexes: shiftboss_process_life where the host is named, else shiftboss_process_started.
select id, host, program, pool, launcher, pid, started_at, ended_at, ending, code, signal, asked, uptime_seconds,
    peak_memory_kb, cpu_seconds, worker_id, code_version,
    case when %(logs)s or id = coalesce(nullif(%(log_of)s::bigint, 0), (
        select p.id
        from shiftboss_process p
        where %(log_of)s::bigint = 0 and p.host = %(host)s::text and p.program = %(program)s::text
            and p.ended_at is not null and not p.asked
        order by p.started_at desc, p.launcher desc
        limit 1
    )) then log end, jobs::text, noted_at
from shiftboss_process
where (%(host)s::text is null or host = %(host)s::text)
    and (%(program)s::text is null or program = %(program)s::text)
    and (%(pool)s::text is null or pool = %(pool)s::text)
    and (%(ended)s::boolean is null or (ended_at is not null) = %(ended)s::boolean)
order by started_at desc, id desc
limit %(limit)s
