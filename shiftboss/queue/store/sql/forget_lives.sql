-- The agent drops all but the newest lives of each program of its host: so a loop of crashes fills no disk.
-- Guard: it is the host's agent. Index: shiftboss_process_life; a host has few programs, and of each a bounded number.
with held as (
    select name from shiftboss_host where name = %(host)s and fence = %(fence)s and stopped_at is null for share
),
ranked as (
    select p.id, row_number() over (partition by p.program order by p.started_at desc, p.id desc) as place
    from shiftboss_process p
    join held on held.name = p.host
)
delete from shiftboss_process
where id in (select id from ranked where place > %(keep)s)
returning id
