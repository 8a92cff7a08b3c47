-- The record's writer: one call is one transaction's worth of change. Made by runs/sql/install.py, which fills in
-- the branch of each table. Refusals have SQLSTATEs of our own, mapped in runs/record.py:
--   RC001 stale owner   RC002 stale version   RC003 illegal move   RC004 lost race (prior state differs)
--   RC005 no permit     RC006 action id with another body   RC007 action in flight   RC404 no such run
--   RC008 nothing is sent: a restore holds the workspace, or nobody has compared this server with what was last seen

CREATE OR REPLACE FUNCTION runs_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT clock_timestamp() + COALESCE((SELECT shift FROM runs_clockshift WHERE id = 1), interval '0')
$$;

-- {"settled_at": 0, "expires_at": 20} -> the same keys as instants, counted in seconds from p_now
CREATE OR REPLACE FUNCTION runs_times(p_times jsonb, p_now timestamptz) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT COALESCE(jsonb_object_agg(key, p_now + make_interval(secs => value::float8)), '{}'::jsonb)
    FROM jsonb_each_text(p_times)
$$;

-- Which start of which server, and which tables, these are. A cold copy put back, a promoted replica, a dump read into
-- a new database or over the old tables: each has another one. The file that the server was started from is not asked.
CREATE OR REPLACE FUNCTION runs_identity() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws('/', extract(epoch FROM pg_postmaster_start_time()),
                     (SELECT oid FROM pg_database WHERE datname = current_database()), 'runs_epoch'::regclass::oid)
$$;

-- Why nothing is sent for a workspace now, or an empty text. An installation that was never compared sends.
CREATE OR REPLACE FUNCTION runs_holds(p_workspace uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_identity text;
BEGIN
    SELECT identity INTO v_identity FROM runs_epoch ORDER BY id DESC LIMIT 1;
    IF v_identity <> '' AND v_identity <> runs_identity() THEN RETURN 'not_compared'; END IF;
    PERFORM 1 FROM runs_restore WHERE workspace_id = p_workspace AND state <> 'released';
    RETURN CASE WHEN FOUND THEN 'frozen' ELSE '' END;
END $$;

CREATE OR REPLACE FUNCTION runs_must_be_legal(p_thing text, p_source text, p_target text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM 1 FROM runs_transition WHERE thing = p_thing AND source = p_source AND target = p_target;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a % does not go from "%" to "%"', p_thing, p_source, p_target USING ERRCODE = 'RC003',
            DETAIL = jsonb_build_object('thing', p_thing, 'source', p_source, 'target', p_target)::text;
    END IF;
END $$;

-- Why a guarded change found no row: raises the refusal that fits. Only called when one is due.
CREATE OR REPLACE FUNCTION runs_say_why(
    p_thing text, p_table text, p_workspace uuid, p_run uuid, p_change jsonb, p_set jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_row jsonb;
    v_state text;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE id = $1', p_table) INTO v_row USING (p_change->>'id')::uuid;
    -- A capacity is no workspace's; every other row names its own.
    IF v_row IS NULL OR v_row->>'workspace_id' <> p_workspace::text OR (p_run IS NOT NULL AND v_row->>'run_id' <> p_run::text) THEN
        RAISE EXCEPTION 'no % %', p_thing, p_change->>'id' USING ERRCODE = 'RC404';
    END IF;
    v_state := v_row->>'state';
    IF p_change ? 'prior' AND NOT (p_change->'prior' ? v_state) THEN
        RAISE EXCEPTION 'the % is %', p_thing, v_state USING ERRCODE = 'RC004',
            DETAIL = jsonb_build_object('thing', p_thing, 'id', v_row->'id', 'state', v_state)::text;
    END IF;
    IF p_change ? 'version' AND p_change->>'version' <> v_row->>'version' THEN
        RAISE EXCEPTION 'version % is not current', p_change->>'version' USING ERRCODE = 'RC002', DETAIL =
            jsonb_build_object('thing', p_thing, 'seen', p_change->'version', 'now', v_row->'version')::text;
    END IF;
    IF p_thing = 'signal' THEN
        RAISE EXCEPTION 'the signal was consumed' USING ERRCODE = 'RC004';
    END IF;
    PERFORM runs_must_be_legal(p_thing, v_state, p_set->>'state');
    RAISE EXCEPTION 'the % changed meanwhile', p_thing USING ERRCODE = 'RC004';
END $$;

CREATE OR REPLACE FUNCTION runs_commit(p jsonb, p_sealed bytea DEFAULT NULL) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz;
    v_at text;
    -- The run's row as this commit finds and leaves it: the columns that rules look at, and all that changes.
    v_state text;
    v_was text;
    v_waits text;
    v_waited text;
    v_wake timestamptz;
    v_woke timestamptz;
    v_owner uuid;
    v_ended boolean := false;
    v_version int;
    v_token bigint;
    v_tries int;
    v_checkpoint int;
    v_bump boolean := false;
    v_run jsonb := '{}';
    v_mine constant boolean := p ? 'token';
    v_leasing constant boolean := p ? 'lease';
    v_ws uuid := (p->>'workspace')::uuid;
    v_run_id uuid := (p->>'run')::uuid;
    v_act jsonb := p->'action';
    v_seen jsonb;
    v_entry jsonb;
    v_change jsonb;
    v_set jsonb;
    v_moves jsonb;
    v_text text;
    v_seq int;
    v_prev text;
    v_epoch bigint;
    v_first int;
    v_source text;
    v_dep uuid;
    v_deps uuid[] := '{}';
    v_deltas int[] := '{}';
    v_whats uuid[] := '{}';
    v_permit record;
    v_moment timestamptz;
    v_trip uuid;
    v_alive boolean;
    v_result jsonb;
    v_row jsonb;
    v_target text;
    v_closed record;
BEGIN
    -- 1. The same action id counts once (invariant 15).
    IF v_act IS NOT NULL AND jsonb_typeof(v_act) = 'object' THEN
        IF NOT pg_try_advisory_xact_lock(hashtextextended((v_act->>'id') || (v_act->>'route') || (p->>'actor'), 0)) THEN
            RAISE EXCEPTION 'the same action is being carried out now' USING ERRCODE = 'RC007';
        END IF;
        SELECT jsonb_build_object('result', a.result, 'digest', a.digest) INTO v_seen FROM runs_action a
        WHERE a.workspace_id = v_ws AND a.actor_id = (p->>'actor')::uuid
          AND a.route = v_act->>'route' AND a.id = (v_act->>'id')::uuid;
        IF FOUND THEN
            IF v_seen->>'digest' <> v_act->>'digest' THEN
                RAISE EXCEPTION 'this action id was used for something else' USING ERRCODE = 'RC006';
            END IF;
            RETURN (v_seen->'result') || '{"replayed": true}';
        END IF;
    ELSE
        v_act := NULL;
    END IF;

    -- 2. The run's row is locked first; every other row of it is then ours. Time is read under the lock.
    IF v_run_id IS NULL THEN
        SELECT head_seq, head_hash INTO v_seq, v_prev FROM runs_workspace WHERE id = v_ws FOR NO KEY UPDATE;
        IF NOT FOUND THEN RAISE EXCEPTION 'no workspace %', v_ws USING ERRCODE = 'RC404'; END IF;
        v_now := runs_now();
    ELSIF p ? 'create' THEN
        v_now := runs_now();
        v_set := (p->'create') || runs_times(p->'create_times', v_now);
        v_state := v_set->>'state';
        v_was := '';
        PERFORM runs_must_be_legal('run', '', v_state);
        INSERT INTO runs_run SELECT * FROM jsonb_populate_record(NULL::runs_run, v_set)
        RETURNING waiting_on, wake_at, lease_owner, version, token, tries, checkpoint_seq
        INTO v_waits, v_wake, v_owner, v_version, v_token, v_tries, v_checkpoint;
        v_seq := 0;
        v_prev := '';
    ELSE
        SELECT head_seq, head_hash, state, waiting_on, wake_at, lease_owner, ended_at IS NOT NULL, version, token,
               tries, checkpoint_seq
        INTO v_seq, v_prev, v_state, v_waits, v_wake, v_owner, v_ended, v_version, v_token, v_tries, v_checkpoint
        FROM runs_run WHERE id = v_run_id AND workspace_id = v_ws FOR NO KEY UPDATE;
        IF NOT FOUND THEN RAISE EXCEPTION 'no run %', v_run_id USING ERRCODE = 'RC404'; END IF;
        v_now := runs_now();
        v_was := v_state;
    END IF;
    v_waited := v_waits;
    v_first := v_seq + 1;
    v_at := to_char(v_now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

    -- 3. Who may write: the owner of the lease by its token, a person by the version seen.
    IF v_leasing OR v_mine THEN SELECT max(id) INTO v_epoch FROM runs_epoch; END IF;
    IF v_leasing THEN
        v_text := runs_holds(v_ws);
        IF v_text <> '' THEN RETURN jsonb_build_object('refused', v_text); END IF;
        IF (p->'lease'->>'epoch')::bigint < v_epoch THEN RETURN jsonb_build_object('refused', 'old_epoch'); END IF;
        IF v_ended OR v_state = 'quarantined' THEN
            RETURN jsonb_build_object('refused', v_state);
        END IF;
        IF v_owner IS NOT NULL THEN
            SELECT seen_at > clock_timestamp() - make_interval(secs => (p->'lease'->>'dead_after')::float8) INTO v_alive
            FROM runs_worker WHERE id = v_owner;
            IF COALESCE(v_alive, false) THEN RETURN jsonb_build_object('refused', 'leased'); END IF;
        ELSIF v_wake IS NULL OR v_wake > v_now THEN
            RETURN jsonb_build_object('refused', 'not_due');
        END IF;
        -- A token grows at each hand-over; the epoch in its high bits fences what a restore left behind.
        v_token := greatest(v_token, (p->'lease'->>'epoch')::bigint << 40) + 1;
        v_owner := (p->'lease'->>'worker')::uuid;
        v_wake := NULL;
        v_run := jsonb_build_object('token', v_token, 'tries', v_tries + 1, 'lease_owner', v_owner, 'wake_at', NULL);
        IF v_state NOT IN ('cancelling', 'pausing', 'paused', 'compensating') THEN
            v_state := 'running';
            v_waits := '';
            v_run := v_run || '{"state": "running", "waiting_on": ""}';
        END IF;
    ELSIF v_mine AND (v_token <> (p->>'token')::bigint OR v_owner IS NULL OR v_token >> 40 < v_epoch) THEN
        -- Also a token that the restored row still has: its owner worked on in a world that is gone.
        RAISE EXCEPTION 'token % is not the owner''s', p->>'token' USING ERRCODE = 'RC001',
            DETAIL = jsonb_build_object('token', (p->>'token')::bigint, 'now', v_token)::text;
    END IF;
    IF p ? 'version' AND (p->>'version')::int <> v_version THEN
        RAISE EXCEPTION 'version % is not current', p->>'version' USING ERRCODE = 'RC002',
            DETAIL = jsonb_build_object('thing', 'run', 'seen', (p->>'version')::int, 'now', v_version)::text;
    END IF;

    IF p ? 'before' AND v_now >= (p->>'before')::timestamptz THEN
        RAISE EXCEPTION 'what was decided is not carried out any more' USING ERRCODE = 'RC004',
            DETAIL = jsonb_build_object('thing', 'decision', 'before', p->'before')::text;
    END IF;

    -- 4. The entries: each is one event and the changes it covers, guarded by their prior state.
    FOR v_entry IN SELECT * FROM jsonb_array_elements(p->'entries') LOOP
        v_moves := '[]'::jsonb;
        FOR v_change IN SELECT * FROM jsonb_array_elements(v_entry->'changes') LOOP
            CASE v_change->>'t'
            WHEN 'run' THEN
                IF v_change ? 'prior' AND NOT (v_change->'prior' ? v_state) THEN
                    RAISE EXCEPTION 'the run is %', v_state USING ERRCODE = 'RC004',
                        DETAIL = jsonb_build_object('thing', 'run', 'id', v_run_id, 'state', v_state)::text;
                END IF;
                v_set := COALESCE(v_change->'set', '{}');
                IF v_change ? 'times' THEN v_set := v_set || runs_times(v_change->'times', v_now); END IF;
                v_run := v_run || v_set;
                IF v_set ? 'wake_at' THEN
                    v_woke := v_wake;
                    v_wake := (v_set->>'wake_at')::timestamptz;
                    IF v_change->>'soonest' = 'true' THEN
                        -- What woke it while its owner was at work is not slept over.
                        v_wake := least(v_woke, v_wake);
                        v_run := v_run || jsonb_build_object('wake_at', v_wake);
                    END IF;
                END IF;
                IF v_set ? 'lease_owner' THEN v_owner := (v_set->>'lease_owner')::uuid; END IF;
                IF v_set ? 'waiting_on' THEN v_waits := v_set->>'waiting_on'; END IF;
                IF v_set ? 'ended_at' THEN v_ended := v_set->>'ended_at' IS NOT NULL; END IF;
                IF v_set ? 'state' AND v_set->>'state' <> v_state THEN
                    PERFORM runs_must_be_legal('run', v_state, v_set->>'state');
                    v_moves := v_moves || jsonb_build_object('t', 'run', 'id', v_run_id, 'from', v_state,
                                                             'to', v_set->'state');
                    v_state := v_set->>'state';
                END IF;
                v_bump := v_bump OR COALESCE(v_change->>'bump' = 'true', false);
            WHEN 'reckon' THEN
                -- What the run waits for, from its effects as they stand now, under its lock: two effects that settle
                -- at once cannot both take the other for open. Nothing open: it is due. The owner's own commit never
                -- wakes it: whatever moved while it was at work has set wake_at already.
                SELECT CASE WHEN bool_or(state IN ('unknown', 'disputed')) THEN 'unknown'
                            WHEN bool_or(state = 'awaiting_approval') THEN 'approval'
                            WHEN count(*) > 0 THEN 'in_flight' ELSE '' END
                INTO v_source FROM runs_effect
                WHERE run_id = v_run_id AND state IN ({{effect_open}});
                IF v_ended OR (v_mine AND v_owner IS NOT NULL) THEN
                    NULL; -- over, or its owner is at work and looks for itself
                ELSIF v_change->>'wake' = 'true' OR ((v_source = '' OR v_state = 'pausing') AND NOT v_mine) THEN
                    -- A pause looks at each thing that settles: it is over once nothing is in flight.
                    v_wake := least(COALESCE(v_wake, v_now), v_now);
                    v_run := v_run || jsonb_build_object('wake_at', v_wake);
                ELSIF v_source <> '' AND v_waits IN ('unknown', 'approval', 'in_flight') THEN
                    v_waits := v_source;
                    v_run := v_run || jsonb_build_object('waiting_on', v_waits);
                END IF;
            WHEN 'close_reviews' THEN
                FOR v_closed IN
                    UPDATE runs_review SET state = 'closed', closed_at = v_now
                    WHERE id IN (
                        SELECT r.id FROM runs_review r WHERE r.run_id = v_run_id AND r.workspace_id = v_ws
                           AND r.state = 'open' AND r.subject = (v_change->>'subject')::uuid
                        UNION ALL  -- what is about no run is closed from the workspace's own chain
                        SELECT r.id FROM runs_review r WHERE v_run_id IS NULL AND r.run_id IS NULL
                           AND r.workspace_id = v_ws AND r.state = 'open' AND r.subject = (v_change->>'subject')::uuid)
                      -- A broken glass is closed by its second person only, whatever becomes of its subject.
                      AND CASE WHEN v_change ? 'kinds' THEN v_change->'kinds' ? kind ELSE kind <> 'break_glass' END
                    RETURNING *
                LOOP
                    v_moves := v_moves || jsonb_build_object('t', 'review', 'id', v_closed.id, 'from', 'open', 'to', 'closed');
                END LOOP;
{{branches}}
            ELSE
                RAISE EXCEPTION 'unknown kind of row: %', v_change->>'t' USING ERRCODE = 'RC003';
            END CASE;
        END LOOP;
        IF v_leasing AND v_state <> v_was AND v_moves = '[]'::jsonb THEN
            PERFORM runs_must_be_legal('run', v_was, v_state);
            v_moves := jsonb_build_array(jsonb_build_object('t', 'run', 'id', v_run_id, 'from', v_was, 'to', v_state));
        ELSIF v_was = '' AND v_seq = 0 THEN
            v_moves := jsonb_build_array(jsonb_build_object('t', 'run', 'id', v_run_id, 'from', '', 'to', v_state))
                || v_moves;
        END IF;

        -- 5. The event: its stored text names the previous hash, and the hash covers the text byte for byte.
        v_seq := v_seq + 1;
        v_text := jsonb_build_object(
            'v', 1, 'workspace', v_ws, 'run', v_run_id, 'seq', v_seq, 'prev', v_prev, 'at', v_at,
            'kind', v_entry->>'kind', 'actor', p->'actor', 'behalf', p->'behalf', 'action', v_act->'id',
            'reason', p->'reason', 'token', CASE WHEN v_mine OR v_leasing THEN v_token END,
            'moves', v_moves, 'data', COALESCE(v_entry->'data', '{}'))::text;
        v_prev := encode(sha256(convert_to(v_text, 'UTF8')), 'hex');
        INSERT INTO runs_event (workspace_id, run_id, seq, kind, actor_id, at, text, hash)
        VALUES (v_ws, v_run_id, v_seq, v_entry->>'kind', (p->>'actor')::uuid, v_now, v_text, v_prev);
    END LOOP;

    -- 6. The checkpoint, in sequence.
    IF p_sealed IS NOT NULL THEN
        v_checkpoint := v_checkpoint + 1;
        IF (p->'checkpoint'->>'seq')::int <> v_checkpoint THEN
            RAISE EXCEPTION 'checkpoint % does not follow %', p->'checkpoint'->>'seq', v_checkpoint - 1
                USING ERRCODE = 'RC001';
        END IF;
        v_run := v_run || jsonb_build_object('checkpoint_seq', v_checkpoint);
        IF p->'checkpoint'->>'base' IS NOT NULL THEN
            -- A delta of a delta, or of what was never committed, could not be opened.
            PERFORM 1 FROM runs_checkpoint
            WHERE run_id = v_run_id AND seq = (p->'checkpoint'->>'base')::int AND base IS NULL;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'checkpoint % is no full one of this run', p->'checkpoint'->>'base'
                    USING ERRCODE = 'RC003';
            END IF;
        END IF;
        INSERT INTO runs_checkpoint (workspace_id, run_id, seq, why, schema, base, key, sealed, digest, size, address, at)
        VALUES (v_ws, v_run_id, v_checkpoint, p->'checkpoint'->>'why', (p->'checkpoint'->>'schema')::int,
                (p->'checkpoint'->>'base')::int, p->'checkpoint'->>'key',
                p_sealed, encode(sha256(p_sealed), 'hex'), length(p_sealed), '', v_now);
    END IF;

    -- 7. The head moves with everything else.
    IF v_run_id IS NULL THEN
        UPDATE runs_workspace SET head_seq = v_seq, head_hash = v_prev WHERE id = v_ws;
    ELSE
        v_run := v_run || jsonb_build_object('head_seq', v_seq, 'head_hash', v_prev);
        IF v_bump OR v_state <> v_was OR v_waits <> v_waited THEN
            v_run := v_run || jsonb_build_object('version', v_version + CASE WHEN v_was = '' THEN 0 ELSE 1 END);
        END IF;
        IF v_ended AND v_state <> v_was AND v_state NOT IN ({{run_ends_open}}) THEN
            -- Nothing ends while something of it is in flight, accepted, unknown or disputed (invariants 4 and 7).
            PERFORM 1 FROM runs_effect WHERE run_id = v_run_id AND state IN ({{effect_blocks_end}});
            IF FOUND THEN
                RAISE EXCEPTION 'a run does not end as % with an open effect', v_state USING ERRCODE = 'RC003';
            END IF;
        END IF;
        UPDATE runs_run AS t SET ({{run_columns}}) = (SELECT {{run_values}} FROM jsonb_populate_record(t, v_run) AS r)
        WHERE t.id = v_run_id RETURNING CASE WHEN v_leasing THEN to_jsonb(t) END INTO v_row;
        IF NOT v_leasing THEN
            -- What its owner does not have yet: the columns that changed, and those a doorbell is rung by.
            v_row := v_run || jsonb_build_object('state', v_state, 'wake_at', v_wake, 'lease_owner', v_owner);
        END IF;
    END IF;
    v_result := jsonb_build_object('at', v_at, 'first', v_first, 'last', v_seq);
    IF v_act IS NOT NULL THEN
        v_result := v_result || jsonb_build_object('run', v_run_id, 'facts', COALESCE(v_act->'facts', '{}'));
        INSERT INTO runs_action (workspace_id, actor_id, route, id, digest, result, at)
        VALUES (v_ws, (p->>'actor')::uuid, v_act->>'route', (v_act->>'id')::uuid, v_act->>'digest', v_result, v_now);
    END IF;

    -- 8. Capacities last, in order of id: the only rows that runs share. What is given back comes before what is taken,
    -- so that an answer and the next send can share a permit (runs/sql/capacity.sql).
    IF v_deps <> '{}' THEN
    FOR v_permit IN
        SELECT x.dep, x.delta, x.what FROM unnest(v_deps, v_deltas, v_whats) AS x(dep, delta, what)
        JOIN runs_dependency d ON d.id = x.dep ORDER BY d.capacity_id, x.delta
    LOOP
        IF v_permit.delta < 0 THEN
            v_trip := COALESCE(runs_give_back(v_permit.dep, v_permit.what), v_trip);
        ELSE
            v_moment := runs_admit(v_permit.dep, v_permit.what, COALESCE(p->'admission', '{}'));
        END IF;
    END LOOP;
    IF v_moment IS NOT NULL THEN
        -- How long from now, not when: the sender's clock is another one.
        v_result := v_result || jsonb_build_object('wait', extract(epoch FROM v_moment - runs_now()));
    END IF;
    IF v_trip IS NOT NULL THEN
        v_result := v_result || jsonb_build_object('trip', v_trip);
    END IF;
    END IF;
    IF v_run_id IS NOT NULL THEN
        v_result := v_result || jsonb_build_object('row', v_row);
    END IF;
    RETURN v_result;
END $$;
