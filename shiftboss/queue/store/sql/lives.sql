-- Lives of programs, the newest first: of all, of a host, or of a program of a host; or one of them. Their last
-- lines, which are long, only where they are asked for.
-- Indexes: shiftboss_process_life where the host is named, else shiftboss_process_started.
select id, host, program, pool, launcher, pid, started_at, ended_at, ending, code, signal, asked, uptime_seconds,
    peak_memory_kb, cpu_seconds, worker_id, code_version,
    case when %(logs)s then log end, jobs::text, noted_at
from shiftboss_process
where (%(host)s::text is null or host = %(host)s::text)
    and (%(program)s::text is null or program = %(program)s::text)
    and (%(pool)s::text is null or pool = %(pool)s::text)
    and (%(ended)s::boolean is null or (ended_at is not null) = %(ended)s::boolean)
    and (%(life_id)s::bigint is null or id = %(life_id)s::bigint)
order by started_at desc, id desc
limit %(limit)s
