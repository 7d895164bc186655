        %(queue)s, %(task)s, %(args)s::jsonb,
        case when %(due_at)s::timestamptz > statement_timestamp() then 'scheduled' else 'available' end,
        %(priority)s, coalesce(%(due_at)s::timestamptz, statement_timestamp()), %(deadline)s::timestamptz,
        statement_timestamp(), %(owner)s, %(tenant)s, %(key)s, %(watchers)s::text[], %(tags)s::text[],
        %(meta)s::jsonb, %(failure_limit)s, %(loss_limit)s, %(revision)s::bigint
