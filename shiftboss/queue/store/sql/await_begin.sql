-- Somebody awaits a job's end from now on. What others left behind that is over for a minute goes.
with over as (
    delete from shiftboss_waiter where until < clock_timestamp() - interval '1 minute'
)
insert into shiftboss_waiter (job_id, until)
values (%(job_id)s, clock_timestamp() + make_interval(secs => %(seconds)s))
returning id
