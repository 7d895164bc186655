update shiftboss_job j
set
-- part: leased
-- By primary key, whatever the planner believes of the table.
where j.id = any (array(select id from picked))
returning
-- part: claimed_columns
