-- History is append-only, also for whoever owns the table: UPDATE, DELETE and TRUNCATE are refused, and the triggers
-- fire in every session_replication_role (ENABLE ALWAYS). Evidence is kept the same way.
CREATE FUNCTION runs_history_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% refused: % is append-only', TG_OP, TG_TABLE_NAME USING ERRCODE = 'RC009';
END $$;

CREATE TRIGGER event_is_kept BEFORE UPDATE OR DELETE ON runs_event
    FOR EACH ROW EXECUTE FUNCTION runs_history_is_kept();
CREATE TRIGGER event_is_not_truncated BEFORE TRUNCATE ON runs_event
    FOR EACH STATEMENT EXECUTE FUNCTION runs_history_is_kept();
CREATE TRIGGER evidence_is_kept BEFORE UPDATE OR DELETE ON runs_evidence
    FOR EACH ROW EXECUTE FUNCTION runs_history_is_kept();
CREATE TRIGGER evidence_is_not_truncated BEFORE TRUNCATE ON runs_evidence
    FOR EACH STATEMENT EXECUTE FUNCTION runs_history_is_kept();
ALTER TABLE runs_event ENABLE ALWAYS TRIGGER event_is_kept;
ALTER TABLE runs_event ENABLE ALWAYS TRIGGER event_is_not_truncated;
ALTER TABLE runs_evidence ENABLE ALWAYS TRIGGER evidence_is_kept;
ALTER TABLE runs_evidence ENABLE ALWAYS TRIGGER evidence_is_not_truncated;

-- A fencing token never falls, an ended run stays ended (invariants 5 and 6), whoever writes.
CREATE FUNCTION runs_run_only_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.token < OLD.token THEN
        RAISE EXCEPTION 'a token never falls' USING ERRCODE = 'RC001';
    END IF;
    IF OLD.ended_at IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at IS DISTINCT FROM OLD.ended_at) THEN
        RAISE EXCEPTION 'an ended run stays ended' USING ERRCODE = 'RC003';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER run_only_forward BEFORE UPDATE ON runs_run FOR EACH ROW EXECUTE FUNCTION runs_run_only_forward();

-- Rows that change at each commit leave room on their page, so that their updates stay off the indexes.
ALTER TABLE runs_run SET (fillfactor = 70);
ALTER TABLE runs_effect SET (fillfactor = 70);
ALTER TABLE runs_attempt SET (fillfactor = 70);
