-- What happened to the whole within the last %(back_seconds)s s, the newest first: deploys and losses, and of the
-- newest 5,000 acts the pauses, resumptions and limits. Indexes: shiftboss_mark_at, primary key of the audit.
select kind, subject, at, facts::text
from (
    select kind, subject, at, facts
    from shiftboss_mark
    where at > statement_timestamp() - make_interval(secs => %(back_seconds)s::double precision)
    union all
    select act, coalesce(queue, ''), at, jsonb_build_object('after', after)
    from (select act, queue, at, after from shiftboss_audit order by id desc limit 5000) newest
    where act in ('pause', 'resume', 'limit')
        and at > statement_timestamp() - make_interval(secs => %(back_seconds)s::double precision)
) happened
order by at desc, kind, subject
limit %(limit)s
