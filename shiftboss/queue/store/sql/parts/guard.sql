    -- By primary key, whatever the planner believes of the table (the array's length is unknown to it).
    j.id = any (array(select id from outcome))
        and j.id = o.id
        and j.fence = o.fence
        and j.worker_id = %(worker_id)s
        and j.lease_expires_at > clock_timestamp()
