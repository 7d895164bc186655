-- A client adds items to a backfill: those that are there already stay as they are.
-- Guard: the authority's; not there yet (the primary key decides). Whoever writes items holds their backfill's row, so that two who
-- add the same ones in another order wait for each other in order.
with held as materialized (
    select id
    from shiftboss_backfill
    where id = %(id)s and (%(owner)s::text is null or owner = %(owner)s)
    for no key update
),
added as (
    insert into shiftboss_backfill_item (backfill_id, item, args)
    select held.id, n.item, n.args::jsonb
    from held, unnest(%(items)s::text[], %(args)s::text[]) as n (item, args)
    on conflict do nothing
    returning 1
)
select (select count(*) from added) from held
