-- The database's day (UTC).
select (clock_timestamp() at time zone 'UTC')::date
