-- Where a job stands, live or finished. Indexes: primary key, shiftboss_finished_id.
select j.state
from shiftboss_job j
where j.id = %(id)s
-- part: within
union all
select j.state
from shiftboss_finished j
where j.id = %(id)s
-- part: within
