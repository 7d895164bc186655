-- One worker, as long as it is known. Index: primary key.
select
-- part: worker_columns
from shiftboss_worker
where id = %(worker_id)s
