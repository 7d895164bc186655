-- resume: an operator lets a queue be claimed again; keepers that wait for it are woken.
-- Guard: paused. Index: primary key.
with resumed as (
    update shiftboss_queue
    set paused_at = null, paused_by = null, pause_reason = null
    where name = %(queue)s and paused_at is not null
    returning name
),
became_available as (
    select name as queue, 100 as priority from resumed
),
-- part: notified
select name, (select count(*) from notified) from resumed
