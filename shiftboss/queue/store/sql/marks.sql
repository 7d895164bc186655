-- What happened to the whole within the last %(back_seconds)s s, the newest first: deploys and losses; of the newest
-- 100 rolling restarts, with the versions before and after; and of the newest 5,000 acts the pauses, resumptions and
-- limits. Indexes: shiftboss_mark_at, primary keys of the rolls, their steps and the audit.
select kind, subject, at, facts::text
from (
    select kind, subject, at, facts
    from shiftboss_mark
    where at > statement_timestamp() - make_interval(secs => %(back_seconds)s::double precision)
    union all
    select 'roll', r.id::text, r.asked_at, jsonb_build_object(
        'pool', r.pool, 'state', r.state, 'before', coalesce(s.before, '[]'), 'after', coalesce(s.after, '[]'))
    from (select id, pool, state, asked_at from shiftboss_roll order by id desc limit 100) r
    cross join lateral (
        select jsonb_agg(distinct code_before) filter (where code_before is not null) as before,
            jsonb_agg(distinct code_after) filter (where code_after is not null) as after
        from shiftboss_roll_step
        where roll_id = r.id
    ) s
    where r.asked_at > statement_timestamp() - make_interval(secs => %(back_seconds)s::double precision)
    union all
    select act, coalesce(queue, ''), at, jsonb_build_object('after', after)
    from (select act, queue, at, after from shiftboss_audit order by id desc limit 5000) newest
    where act in ('pause', 'resume', 'limit')
        and at > statement_timestamp() - make_interval(secs => %(back_seconds)s::double precision)
) happened
order by at desc, kind, subject
limit %(limit)s
