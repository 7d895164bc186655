-- Jobs that finished within the last minutes, per queue and minute. Index: shiftboss_finished_at (BRIN).
select queue,
    floor(extract(epoch from statement_timestamp() - finished_at) / 60)::integer as minutes_ago,
    count(*) filter (where state = 'completed'),
    count(*) filter (where state <> 'completed')
from shiftboss_finished
where finished_at > statement_timestamp() - make_interval(mins => %(minutes)s)
-- part: within
group by 1, 2
order by 1, 2
