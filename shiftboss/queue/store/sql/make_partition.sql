-- Make and attach one day's partition; waits at most 200 ms for a lock and then raises lock_not_available.
select shiftboss_make_partition(%(parent)s, %(day)s::date)
