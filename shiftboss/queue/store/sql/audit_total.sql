-- How many jobs an operation has changed. Index: shiftboss_audit_operation.
select coalesce(sum(jobs), 0) from shiftboss_audit where operation = %(operation)s
