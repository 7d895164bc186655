        and (%(queues)s::text[] is null or queue = any (%(queues)s::text[]))
        and (%(owners)s::text[] is null or owner = any (%(owners)s::text[]))
