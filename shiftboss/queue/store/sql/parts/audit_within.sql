    and (%(within)s::text[] is null or queue = any (%(within)s::text[])
        or (actor_kind = %(reader_kind)s::text and actor_id is not distinct from %(reader_id)s::text))
