-- A page of jobs in one state, newest first, below an id.
-- Live states come from one table, final ones from the other. Indexes: primary key or shiftboss_job_quarantined;
-- shiftboss_finished_id or shiftboss_finished_unusual; the owner's indexes.
(
-- part: live_rows
    where state = %(state)s and (%(beyond)s::bigint is null or id < %(beyond)s)
        and (%(queue)s::text is null or queue = %(queue)s)
-- part: within
    order by id desc
    limit %(limit)s
)
union all
(
-- part: finished_rows
    where state = %(state)s and (%(beyond)s::bigint is null or id < %(beyond)s)
        and (%(queue)s::text is null or queue = %(queue)s)
-- part: within
    order by id desc
    limit %(limit)s
)
