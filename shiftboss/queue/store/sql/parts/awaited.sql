-- Somebody may await the end of one of these: `rested` holds the ids. Few wait at a time: read whole.
awaited as (
    select pg_notify('shiftboss_rested', id::text)
    from rested
    where id = any (array(select job_id from shiftboss_waiter where until > clock_timestamp()))
)
