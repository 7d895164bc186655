-- stage: one follow-up takes its key over and is available.
-- Guard: a waiting follow-up that is due; the unique index lets no other live job hold the key. Index: primary key.
with staged as (
    update shiftboss_job
    set state = 'available', follow_up = false
    where id = %(id)s and follow_up and state = 'scheduled' and due_at <= statement_timestamp()
    returning id, queue, priority
),
became_available as (
    select queue, priority from staged
),
-- part: notified
select id, (select count(*) from notified) from staged
