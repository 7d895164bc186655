-- The jobs that the next entry of an operation has changed. Index: shiftboss_audit_operation.
select id,
    case when after -> 'ids' is null then array[job_id]
        else array(select value::bigint from jsonb_array_elements_text(after -> 'ids') as value) end
from shiftboss_audit
where operation = %(operation)s and jobs > 0 and (%(after_id)s::bigint is null or id > %(after_id)s)
order by id
limit 1
