-- prune: end a detach that was begun and interrupted.
alter table {parent} detach partition {partition} finalize
