    and ((%(owner)s::text is null and %(queues)s::text[] is null and %(owners)s::text[] is null)
        or exists (
            select from shiftboss_job
            where id = %(id)s
-- part: within
        )
        or exists (
            select from shiftboss_finished
            where id = %(id)s
-- part: within
        ))
