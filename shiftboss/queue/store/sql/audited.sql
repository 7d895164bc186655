-- What a request of a person did when it came first. Index: shiftboss_audit_request.
select
-- part: audit_columns
from shiftboss_audit
where request_id = %(request_id)s and actor_kind = %(actor_kind)s and actor_id is not distinct from %(actor_id)s
