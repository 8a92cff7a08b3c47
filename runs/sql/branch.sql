            WHEN '{{thing}}' THEN
                IF v_change->>'op' = 'new' THEN
                    r_{{thing}} := jsonb_populate_record(NULL::{{table}}, (v_change->'row') || CASE WHEN v_change ? 'times'
                        THEN runs_times(v_change->'times', v_now) ELSE '{}'::jsonb END);
                    {{on_new}}
                    INSERT INTO {{table}} SELECT r_{{thing}}.* {{conflict}};
                    {{new_move}}
                ELSE
                    SELECT * INTO r_{{thing}} FROM {{table}}
                    WHERE id = (v_change->>'id')::uuid AND workspace_id = v_ws{{of_run}} FOR NO KEY UPDATE;
                    IF NOT FOUND THEN
                        RAISE EXCEPTION 'no {{thing}} %', v_change->>'id' USING ERRCODE = 'RC404';
                    END IF;
                    {{guard}}
                    o_{{thing}} := r_{{thing}};
                    r_{{thing}} := jsonb_populate_record(r_{{thing}}, v_set);
                    {{on_move}}
                    UPDATE {{table}} SET ({{columns}}) = ROW({{values}}) WHERE id = r_{{thing}}.id;
                END IF;
