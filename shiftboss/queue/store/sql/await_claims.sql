-- Whoever has limited these queues waits for the claims under way, which do not know of it: what they bring counts.
select pg_advisory_xact_lock(hashtextextended('shiftboss_queue ' || queue, 0))
from (select queue from unnest(%(queues)s::text[]) as o (queue) order by queue) o
