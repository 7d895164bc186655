-- What a transaction of several statements has done for a part, and how long it took. By primary key.
update shiftboss_sample
set at = clock_timestamp(), seen = %(seen)s::jsonb,
    took_ms = ceil(extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000)::integer
where part = %(part)s
