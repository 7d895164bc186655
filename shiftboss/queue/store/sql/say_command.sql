-- say: how far a command has come. Guard: whoever claimed it, and it has not ended. Index: primary key.
update shiftboss_command
set progress = %(progress)s
where id = %(command_id)s and fence = %(fence)s and state = 'claimed'
returning id
