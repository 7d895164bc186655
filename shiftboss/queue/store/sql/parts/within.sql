        and (%(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers))
-- part: scope
