-- The wait is over.
delete from shiftboss_waiter where id = %(waiter)s returning id
