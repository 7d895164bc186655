-- An operator lets a backfill be fed again. Guard: paused. Index: primary key.
update shiftboss_backfill set paused_at = null where id = %(id)s and paused_at is not null returning id
