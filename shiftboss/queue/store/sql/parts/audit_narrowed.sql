from newest
where (%(act)s::text is null or act = %(act)s)
    and (%(via)s::text is null or via = %(via)s)
-- part: audit_within
    and (%(actor)s::text is null or position(lower(%(actor)s) in lower(actor_name)) > 0)
order by id desc
limit %(limit)s
