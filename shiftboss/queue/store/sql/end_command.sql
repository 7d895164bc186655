-- end: what became of a command. Guard: whoever claimed it, and it has not ended. Index: primary key.
update shiftboss_command
set state = case when %(failed)s then 'failed' else 'done' end, result = %(result)s::jsonb,
    ended_at = clock_timestamp()
where id = %(command_id)s and fence = %(fence)s and state = 'claimed'
returning id
