-- prune: does a live job have a row in this partition? Index: primary key of shiftboss_job.
select exists (
    select from {partition} r
    where exists (select from shiftboss_job j where j.id = r.job_id))
