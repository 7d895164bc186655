        and (%(owner)s::text is null or j.owner = %(owner)s or %(owner)s = any (j.watchers))
