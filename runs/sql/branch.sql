            WHEN '{{thing}}' THEN
                IF v_change->>'op' = 'new' THEN
                    v_set := v_change->'row';
                    IF v_change ? 'times' THEN v_set := v_set || runs_times(v_change->'times', v_now); END IF;{{may_send}}
                    INSERT INTO {{table}} SELECT * FROM jsonb_populate_record(NULL::{{table}}, v_set)
                    {{new_where}}{{conflict}};
                    {{new_after}}
                ELSE
                    v_set := COALESCE(v_change->'set', '{}');
                    IF v_change ? 'times' THEN v_set := v_set || runs_times(v_change->'times', v_now); END IF;{{may_send}}
                    UPDATE {{table}} AS t SET ({{columns}}) =
                        (SELECT {{values}} FROM jsonb_populate_record(t, v_set) AS r)
                    WHERE t.id = (v_change->>'id')::uuid AND {{mine}}{{guards}}{{returning}};
                    IF NOT FOUND THEN
                        PERFORM runs_say_why('{{thing}}', '{{table}}', v_ws, {{owner}}, v_change, v_set);
                    END IF;
                    {{after}}
                END IF;
