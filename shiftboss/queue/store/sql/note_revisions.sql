-- enqueue_many: configurations that its jobs are about to point to, where they are not visible yet. As in
-- parts/noted_revision.sql nobody waits. Index: shiftboss_revision_revision.
insert into shiftboss_revision (revision, task, config)
select n.revision, n.task, n.config::jsonb
from unnest(%(revisions)s::bigint[], %(tasks)s::text[], %(configs)s::text[]) as n (revision, task, config)
where not exists (select from shiftboss_revision r where r.revision = n.revision)
