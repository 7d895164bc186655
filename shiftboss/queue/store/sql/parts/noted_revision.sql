-- The configuration that the job points to, where it is not visible yet. Two who do not see each other write it both,
-- alike, and neither waits. Index: shiftboss_revision_revision.
noted_revision as (
    insert into shiftboss_revision (revision, task, config)
    select %(revision)s::bigint, %(task)s, %(config)s::jsonb
    where %(revision)s::bigint is not null
        and not exists (select from shiftboss_revision r where r.revision = %(revision)s::bigint)
)
