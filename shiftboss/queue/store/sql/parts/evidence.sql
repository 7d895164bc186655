-- What an attempt keeps: what its worker says of it, and the checkpoint that the job had by then; of a long one only
-- how long it is.
        coalesce(evidence::jsonb, '{}') || case
            when checkpoint is null then '{}'
            when length(checkpoint::text) <= 2000 then jsonb_build_object('checkpoint', checkpoint)
            else jsonb_build_object('checkpoint_characters', length(checkpoint::text))
        end
