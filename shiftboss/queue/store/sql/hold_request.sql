-- Of equal requests of a person one is done at a time, until the transaction ends.
select pg_advisory_xact_lock(hashtextextended(
    concat_ws(' ', 'shiftboss_request', %(actor_kind)s::text, %(actor_id)s::text, %(request_id)s::text), 0))
