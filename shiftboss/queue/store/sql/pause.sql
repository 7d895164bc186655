-- pause: an operator stops a queue from being claimed. Who paused it first is kept.
-- Guard: not paused yet.
insert into shiftboss_queue as q (name, paused_at, paused_by, pause_reason)
values (%(queue)s, clock_timestamp(), %(by)s, %(reason)s)
on conflict (name) do update
set paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
where q.paused_at is null
returning name
