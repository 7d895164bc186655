-- For the rest of the transaction, wait so long for a lock.
select set_config('lock_timeout', %(milliseconds)s::text, true)
