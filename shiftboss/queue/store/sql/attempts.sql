-- The attempts of a job that did not succeed, oldest first. Index: shiftboss_attempt_job.
select job_id, fence, worker_id, outcome, started_at, ended_at, run_ms, error_code, error_type,
    error_message, error_fingerprint, traceback, evidence::text
from shiftboss_attempt
where job_id = %(id)s
-- part: visible
order by fence, ended_at
limit 1000
