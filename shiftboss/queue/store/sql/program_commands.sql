-- What was asked of a program of a host, or of its pool, the newest first; among the newest `reach` of all commands.
-- What a log said is left out: it is for those who may see logs. Index: primary key.
with newest as (
    select *
    from shiftboss_command
    order by id desc
    limit %(reach)s
)
select
-- part: command_columns
from newest c
left join shiftboss_host h on h.name = c.host
where c.host = %(host)s and (c.program = %(program)s or c.pool = %(pool)s::text) and c.verb <> 'tail'
order by c.id desc
limit %(limit)s
