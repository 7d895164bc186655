-- Commands, the newest first: one, those of a host, or of all. What waits past its time has expired; what an agent
-- claimed that is its host's no more is lost: nobody knows whether it was done. Index: primary key.
select
-- part: command_columns
from shiftboss_command c
left join shiftboss_host h on h.name = c.host
where (%(command_id)s::bigint is null or c.id = %(command_id)s::bigint)
    and (%(host)s::text is null or c.host = %(host)s::text)
order by c.id desc
limit %(limit)s
