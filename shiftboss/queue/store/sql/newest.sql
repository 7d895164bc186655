-- The newest live job. Index: primary key, backwards.
select coalesce(max(id), 0) from shiftboss_job
