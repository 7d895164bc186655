-- What the row's own times do not tell is stored as an event, in order; `changed` holds the jobs.
noted as (
    insert into shiftboss_event (job_id, seq, at, kind, data)
    select c.id,
        1 + greatest(c.event_seq, coalesce((select max(e.seq) from shiftboss_event e where e.job_id = c.id), 0)),
        clock_timestamp(), %(kind)s, jsonb_build_object('by', %(by)s::text, 'from', c.state_before) || c.detail
    from changed c
)
