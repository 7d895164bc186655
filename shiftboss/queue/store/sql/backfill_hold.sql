-- Whoever feeds a backfill holds it until the transaction ends; where somebody else does, it is left to them.
select id, name, failure_limit, loss_limit
from shiftboss_backfill
where id = %(id)s
for no key update skip locked
