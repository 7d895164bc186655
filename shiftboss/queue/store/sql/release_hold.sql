-- release: a person ends a hold: `release` and `start` leave its start to the agent, `stop` wants none.
-- Guard: it is open and nobody has ended it. Index: shiftboss_hold_open.
update shiftboss_hold
set released_at = clock_timestamp(), released_as = %(how)s, released_by = %(by)s,
    taken_up_at = case when %(how)s = 'stop' then clock_timestamp() end
where host = %(host)s and program = %(program)s and taken_up_at is null and released_at is null
returning id, step, until
