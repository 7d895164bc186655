-- prune: take a day out of its table, beside inserts and readers. Interrupted, it stays pending (finalize.sql).
alter table {parent} detach partition {partition} concurrently
