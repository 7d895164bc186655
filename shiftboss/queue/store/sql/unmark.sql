-- marks.note: marks older than any chart. Index: shiftboss_mark_at.
delete from shiftboss_mark where at < clock_timestamp() - interval '40 days'
