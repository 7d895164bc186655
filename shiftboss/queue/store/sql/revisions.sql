-- The configurations behind these revisions; rows of one revision are alike. Index: shiftboss_revision_revision.
select distinct on (revision) revision, config::text
from shiftboss_revision
where revision = any (%(revisions)s::bigint[])
