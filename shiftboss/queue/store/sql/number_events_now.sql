-- As number_events, without waiting: the answer is those jobs whose events nobody else numbers now.
select id
from unnest(%(ids)s::bigint[]) as o (id)
where
    pg_try_advisory_xact_lock(hashtextextended('shiftboss_event', id))
