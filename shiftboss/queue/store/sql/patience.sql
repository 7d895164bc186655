-- How long this transaction waits for a lock.
select current_setting('lock_timeout')
