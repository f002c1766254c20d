-- Plans, their steps, and the work of sub-agents.
CREATE TABLE plans (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C" NOT NULL,  -- that has made it, or that carries it out
    status       TEXT    NOT NULL CHECK (status IN
        ('draft', 'held', 'executing', 'completed', 'completed_with_errors', 'failed', 'cancelled')),
    body         TEXT    NOT NULL,  -- JSON: the plan without its steps
    created_at   BIGINT NOT NULL,
    completed_at BIGINT,
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX plans_of_conversation ON plans (tenant, user_id, conversation, created_at, id);
CREATE INDEX plans_waiting ON plans (tenant, user_id, conversation, created_at) WHERE status IN ('draft', 'held');
CREATE INDEX plans_executing ON plans (run_id) WHERE status = 'executing';

CREATE TABLE plan_steps (
    tenant  TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL REFERENCES plans (id) ON DELETE CASCADE,
    number  BIGINT NOT NULL,
    status  TEXT    NOT NULL CHECK (status IN ('pending', 'executing', 'completed', 'failed', 'skipped', 'cancelled')),
    writes  BIGINT NOT NULL CHECK (writes IN (0, 1)),  -- 1: it may change something
    body    TEXT    NOT NULL,  -- JSON: the step
    error   TEXT,  -- why it ended with its run, where it did
    PRIMARY KEY (plan_id, number)
);

CREATE TABLE executions (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C" NOT NULL,
    plan_id      TEXT COLLATE "C",  -- NULL: a model has asked it directly
    status       TEXT    NOT NULL CHECK (status IN ('executing', 'completed', 'failed', 'cancelled')),
    body         TEXT    NOT NULL,  -- JSON: the task, the tools, the calls, the result
    error        TEXT,  -- why it ended with its run, where it did
    started_at   BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX executions_of_conversation ON executions (tenant, user_id, conversation, started_at);
CREATE INDEX executions_of_plan ON executions (plan_id) WHERE plan_id IS NOT NULL;
CREATE INDEX executions_executing ON executions (run_id) WHERE status = 'executing';

-- A write of a helper is in no turn: what it was is noted with it. NULL: noted by an earlier version.
ALTER TABLE dispatches ADD COLUMN call TEXT;
ALTER TABLE dispatches ADD COLUMN tool TEXT;

-- What they hold counts as all else that a user keeps.
CREATE FUNCTION body_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO stored_usage AS s (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
        ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE stored_usage SET bytes = bytes + octet_length(NEW.body) - octet_length(OLD.body)
        WHERE tenant = NEW.tenant AND user_id = NEW.user_id;
    ELSE
        UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER plans_counted AFTER INSERT OR UPDATE OF body OR DELETE ON plans FOR EACH ROW EXECUTE FUNCTION body_changed();
CREATE TRIGGER plan_steps_counted AFTER INSERT OR UPDATE OF body OR DELETE ON plan_steps FOR EACH ROW EXECUTE FUNCTION body_changed();
CREATE TRIGGER executions_counted AFTER INSERT OR UPDATE OF body OR DELETE ON executions FOR EACH ROW EXECUTE FUNCTION body_changed();

-- Where transactions are held to row-level security already, the new tables hold them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
