-- An operator stops a backfill from being fed. Guard: not paused. Index: primary key.
update shiftboss_backfill set paused_at = clock_timestamp() where id = %(id)s and paused_at is null returning id
