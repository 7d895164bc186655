    and (%(owner)s::text is null
        or exists (
            select from shiftboss_job j
            where j.id = %(id)s and (j.owner = %(owner)s or %(owner)s = any (j.watchers)))
        or exists (
            select from shiftboss_finished f
            where f.id = %(id)s and (f.owner = %(owner)s or %(owner)s = any (f.watchers))))
