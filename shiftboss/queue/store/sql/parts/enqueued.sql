became_available as (
    select queue, priority from enqueued where state = 'available'
),
-- part: notified
select id, state, enqueued_at, (select count(*) from notified) from enqueued
