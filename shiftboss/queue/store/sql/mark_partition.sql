-- prune: this day is about to be taken out and dropped (old_partitions.sql knows it by this mark).
comment on table {partition} is 'shiftboss: past its retention, to be dropped'
