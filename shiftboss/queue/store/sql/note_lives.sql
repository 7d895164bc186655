-- note: lives of programs, as they begin and as they end, in the order given; noted again they stay as they are.
-- Guard: the one who notes is the host's agent, whose lease runs; nobody takes it meanwhile.
-- Indexes: primary key of the host, shiftboss_process_life; shiftboss_job_running for the jobs of a worker that ended
-- just now. The table of workers holds those of a day.
with held as (
    select name, hostname
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
),
noted as (
    insert into shiftboss_process as p (
        host, program, pool, launcher, pid, started_at, ended_at, ending, code, signal, asked, uptime_seconds,
        peak_memory_kb, cpu_seconds, worker_id, code_version, log, jobs)
    select held.name, l.program, l.pool, l.launcher, l.pid, to_timestamp(l.started), to_timestamp(l.ended), l.ending,
        l.code, l.signal, coalesce(l.asked, false), l.uptime_seconds, l.peak_memory_kb, l.cpu_seconds,
        w.id, w.code_version, l.log,
        case when l.ended is not null and l.is_fresh and w.id is not null then (
            select coalesce(jsonb_agg(jsonb_build_object(
                'id', j.id::text, 'queue', j.queue, 'task', j.task, 'fence', j.fence) order by j.id), '[]')
            from (
                select id, queue, task, fence
                from shiftboss_job
                where state = 'running' and worker_id = w.id
                order by id
                limit 100
            ) j
        ) end
    from held, rows from (jsonb_to_recordset(%(lives)s::jsonb) as (
        program text, pool text, launcher integer, pid integer, started double precision, ended double precision,
        ending text, code integer, signal integer, asked boolean, uptime_seconds double precision,
        peak_memory_kb bigint, cpu_seconds double precision, log text, is_fresh boolean)) with ordinality l
    left join lateral (
        select id, code_version
        from shiftboss_worker
        where host = (select hostname from held) and shiftboss_worker.pid = l.pid and l.pool is not null
            -- another process may have had the pid before; the two clocks need not agree to the second
            and started_at > to_timestamp(l.started) - interval '1 minute'
        order by id desc
        limit 1
    ) w on true
    order by l.ordinality
    on conflict on constraint shiftboss_process_life do update
    set ended_at = excluded.ended_at, ending = excluded.ending, code = excluded.code, signal = excluded.signal,
        asked = excluded.asked, uptime_seconds = excluded.uptime_seconds, peak_memory_kb = excluded.peak_memory_kb,
        cpu_seconds = excluded.cpu_seconds, worker_id = coalesce(excluded.worker_id, p.worker_id),
        code_version = coalesce(excluded.code_version, p.code_version), log = excluded.log, jobs = excluded.jobs,
        noted_at = clock_timestamp()
    where p.ended_at is null and excluded.ended_at is not null
    returning 1
)
select (select count(*) from held), (select count(*) from noted)
