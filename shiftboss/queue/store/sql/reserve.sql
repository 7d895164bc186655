-- The ids of jobs that are about to be copied in, and the database's time.
select statement_timestamp(),
    array(
        select nextval(pg_get_serial_sequence('shiftboss_job', 'id')) from generate_series(1, %(n)s::integer))
