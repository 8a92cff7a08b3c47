

-- Capacities: permits, moments, breaker and retry budget, counted in the transaction that commits or ends an attempt.
-- The capacity's row is locked before anything of it is read, so that two claims never take the same moment
-- (invariant 12) and a claim that comes after a hold sees it. Refusals are RC005; their detail says why, and when to
-- come again. Locks: capacity, then dependency, then drain.

-- What we pace at: below the safe rate, since calls arrive less evenly than they leave. No burst.
CREATE OR REPLACE FUNCTION runs_pace(p_rate float8) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_rate >= 10 THEN least(p_rate - 2, p_rate * 0.96) ELSE p_rate * 0.8 END
$$;

CREATE OR REPLACE FUNCTION runs_no_permit(p_why text, p_at timestamptz, p_in float8) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'nothing is sent now: %', p_why USING ERRCODE = 'RC005',
        DETAIL = jsonb_build_object('why', p_why, 'at', p_at, 'wait', p_in)::text;
END $$;

-- Let one attempt (or recorded computation) in. Returns the moment of its call, or NULL where nothing paces it.
CREATE OR REPLACE FUNCTION runs_admit(p_dep uuid, p_attempt uuid, p_hints jsonb) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    c runs_capacity;
    d runs_dependency;
    r runs_drain;
    v_now timestamptz;
    v_asked timestamptz;
    v_tries int;
    v_backlog boolean := false;
    v_turned int;
    v_gap float8;
    v_own timestamptz;
    v_own_gap float8;
    v_at timestamptz;
    v_budget float8 := (p_hints->>'budget')::float8;
BEGIN
    SELECT k.* INTO c FROM runs_capacity k
    WHERE k.id = (SELECT x.capacity_id FROM runs_dependency x WHERE x.id = p_dep) FOR NO KEY UPDATE;
    SELECT * INTO d FROM runs_dependency WHERE id = p_dep FOR SHARE;
    v_now := runs_now();
    IF d.held_at IS NOT NULL THEN
        PERFORM runs_no_permit('held', NULL, NULL);
    END IF;
    IF c.state = 'open' OR c.state = 'half_open' AND c.probe IS NOT NULL THEN
        PERFORM runs_no_permit('breaker', c.reopen_at, NULL);
    END IF;
    IF c.in_flight >= c.max_in_flight THEN
        PERFORM runs_no_permit('permits', NULL, NULL);
    END IF;
    SELECT e.requested_at, e.attempts INTO v_asked, v_tries
    FROM runs_attempt a JOIN runs_effect e ON e.id = a.effect_id WHERE a.id = p_attempt;
    IF d.draining IS NOT NULL THEN
        SELECT * INTO r FROM runs_drain WHERE id = d.draining AND ended_at IS NULL FOR NO KEY UPDATE;
        v_backlog := FOUND AND COALESCE(v_asked <= r.began_at, false);
        IF v_backlog AND r.state NOT IN ('ramping', 'steady')
           AND NOT (r.state = 'canary' AND cardinality(r.canaries) < r.canary) THEN
            PERFORM runs_no_permit('drain', NULL, NULL);
        END IF;
    END IF;

    -- Two windows of 15 s make the counters: the present one and the last.
    v_turned := CASE WHEN c.window_at IS NULL OR v_now >= c.window_at + interval '30 s' THEN 2
                     WHEN v_now >= c.window_at + interval '15 s' THEN 1 ELSE 0 END;
    IF v_turned > 0 THEN
        c.last_calls := CASE v_turned WHEN 1 THEN c.calls ELSE 0 END;
        c.last_repeats := CASE v_turned WHEN 1 THEN c.repeats ELSE 0 END;
        c.last_ended := CASE v_turned WHEN 1 THEN c.ended ELSE 0 END;
        c.last_failed := CASE v_turned WHEN 1 THEN c.failed ELSE 0 END;
        c.calls := 0; c.repeats := 0; c.ended := 0; c.failed := 0; c.window_at := v_now;
    END IF;
    IF v_tries > 1 THEN
        -- Ten repeats are always free: a share of next to nothing says nothing. A probe's repeat is no retry storm.
        IF v_budget IS NOT NULL AND c.state = 'closed' AND NOT v_backlog
           AND c.repeats + c.last_repeats + 1 > greatest(10, v_budget * (c.calls + c.last_calls + 1)) THEN
            PERFORM runs_no_permit('budget', c.window_at + interval '15 s', NULL);
        END IF;
        c.repeats := c.repeats + 1;
    END IF;
    c.calls := c.calls + 1;

    IF c.rate IS NOT NULL THEN
        v_gap := 1 / runs_pace(c.rate);
        v_at := greatest(v_now, c.next_at);
        IF d.share < 1 THEN
            v_own_gap := v_gap / d.share;
            v_own := d.next_at;
        END IF;
        IF v_backlog AND r.state <> 'canary' THEN
            -- New work keeps its share; while none came lately, the backlog has it too.
            v_own_gap := greatest(v_own_gap, v_gap / greatest(r.part, 0.01)
                / CASE WHEN c.fresh_at > v_now - interval '2 s' THEN 1 - d.fresh_share ELSE 1 END);
            v_own := greatest(v_own, r.next_at);
        END IF;
        IF v_own > v_at + make_interval(secs => v_gap) THEN
            -- Taking a moment of the capacity so far ahead would leave those before it to nobody.
            PERFORM runs_no_permit('pace', v_own, extract(epoch FROM v_own - v_now));
        END IF;
        v_at := greatest(v_at, v_own);
        IF v_at > v_now + make_interval(secs => COALESCE((p_hints->>'ahead')::float8, 0)) THEN
            PERFORM runs_no_permit('pace', v_at, extract(epoch FROM v_at - v_now));
        END IF;
        c.next_at := v_at + make_interval(secs => v_gap);
        IF d.share < 1 THEN
            UPDATE runs_dependency SET next_at = v_at + make_interval(secs => v_gap / d.share) WHERE id = p_dep;
        END IF;
    END IF;
    IF v_backlog THEN
        UPDATE runs_drain SET sent = sent + 1,
            canaries = CASE WHEN state = 'canary' THEN canaries || p_attempt ELSE canaries END,
            next_at = CASE WHEN v_at IS NULL THEN NULL ELSE v_at + make_interval(secs => COALESCE(v_own_gap, v_gap)) END
        WHERE id = r.id;
    ELSE
        c.fresh_at := v_now;
    END IF;
    UPDATE runs_capacity SET in_flight = c.in_flight + 1, next_at = c.next_at, fresh_at = c.fresh_at,
        window_at = c.window_at, calls = c.calls, repeats = c.repeats, ended = c.ended, failed = c.failed,
        last_calls = c.last_calls, last_repeats = c.last_repeats, last_ended = c.last_ended,
        last_failed = c.last_failed,
        probe = CASE WHEN c.state = 'half_open' THEN p_attempt ELSE c.probe END,
        probe_ok = CASE WHEN c.state = 'half_open' THEN NULL ELSE c.probe_ok END
    WHERE id = c.id;
    RETURN v_at;
END $$;

-- An attempt ended: its permit comes back and its end is counted. Returns the capacity if its breaker is to be
-- looked at. Turned away, asked to come later, or no answer: a failure of the dependency. What we held back ourselves
-- (no credential, too late) says nothing about it.
CREATE OR REPLACE FUNCTION runs_give_back(p_dep uuid, p_attempt uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    c runs_capacity;
    v_state text;
    v_kind text;
    v_code text;
    v_bad boolean;
BEGIN
    SELECT state, outcome->>'kind', outcome->>'code' INTO v_state, v_kind, v_code
    FROM runs_attempt WHERE id = p_attempt;
    IF NOT FOUND THEN  -- a recorded computation
        SELECT state, outcome->>'kind', outcome->>'code' INTO v_state, v_kind, v_code
        FROM runs_call WHERE id = p_attempt;
    END IF;
    v_bad := CASE
        WHEN v_state = 'lost' OR v_kind IN ('transient', 'overloaded') THEN true
        WHEN v_state = 'not_sent' THEN
            CASE WHEN v_code IN ('connect_failed', 'connect_timeout') THEN true END
        WHEN v_kind = 'unknown' THEN true
        WHEN v_kind IS NOT NULL THEN false END;
    UPDATE runs_capacity k SET in_flight = greatest(k.in_flight - 1, 0),
        ended = k.ended + CASE WHEN v_bad IS NULL THEN 0 ELSE 1 END,
        failed = k.failed + CASE WHEN v_bad THEN 1 ELSE 0 END,
        probe = CASE WHEN k.probe = p_attempt AND v_bad IS NULL THEN NULL ELSE k.probe END,
        probe_ok = CASE WHEN k.probe = p_attempt THEN NOT v_bad ELSE k.probe_ok END
    WHERE k.id = (SELECT x.capacity_id FROM runs_dependency x WHERE x.id = p_dep) RETURNING k.* INTO c;
    IF c.state = 'half_open' AND c.probe = p_attempt OR c.state = 'closed' AND v_bad
       AND c.ended + c.last_ended >= c.breaker_least
       AND c.failed + c.last_failed >= c.breaker_share * (c.ended + c.last_ended) THEN
        RETURN c.id;
    END IF;
    RETURN NULL;
END $$;

-- The next moment of a capacity for a call that makes no attempt (a readback): paced, never stopped by the breaker.
CREATE OR REPLACE FUNCTION runs_take_moment(p_dep uuid, p_ahead float8) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    c runs_capacity;
    v_now timestamptz;
    v_at timestamptz;
BEGIN
    SELECT k.* INTO c FROM runs_capacity k
    WHERE k.id = (SELECT x.capacity_id FROM runs_dependency x WHERE x.id = p_dep);
    IF c.rate IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT k.* INTO c FROM runs_capacity k WHERE k.id = c.id FOR NO KEY UPDATE;
    v_now := runs_now();
    v_at := greatest(v_now, c.next_at);
    IF v_at > v_now + make_interval(secs => p_ahead) THEN
        PERFORM runs_no_permit('pace', v_at, extract(epoch FROM v_at - v_now));
    END IF;
    UPDATE runs_capacity SET next_at = v_at + make_interval(secs => 1 / runs_pace(c.rate)) WHERE id = c.id;
    RETURN extract(epoch FROM v_at - v_now);
END $$;
