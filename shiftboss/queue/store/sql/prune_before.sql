-- prune: the first day that is kept, by the retention or by the latest purge.
select greatest(
    ((clock_timestamp() - make_interval(secs => %(days)s * 86400)) at time zone 'UTC')::date,
    (select max(before) from shiftboss_purge))
