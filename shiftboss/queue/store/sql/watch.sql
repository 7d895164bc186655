-- watch: who has asked for a key that another's job holds becomes a watcher of it, where the project allows it.
-- Guard: it holds its key still, and has room; who watches already has to look again. Index: primary key.
update shiftboss_job
set watchers = watchers || %(owner)s::text
where id = %(id)s
    and state <> 'quarantined'
    and cardinality(watchers) < %(most)s
    and %(owner)s <> all (watchers)
returning id
