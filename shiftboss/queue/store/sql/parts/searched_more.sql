            key, tags, array(
                select left(case p.member ->> 0 when 'args' then args else meta end #>> array(
                    select jsonb_array_elements_text(p.member - 0)), 300)
                from jsonb_array_elements(%(members)s::jsonb) with ordinality p (member, n)
                order by p.n)
