-- Plans that wait for a person in the middle. A constraint is only changed with its table here.
CREATE TABLE plans_10 (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run_id       TEXT    NOT NULL,  -- that has made it, or that carries it out
    status       TEXT    NOT NULL CHECK (status IN
        ('draft', 'held', 'executing', 'paused', 'completed', 'completed_with_errors', 'failed', 'cancelled')),
    body         TEXT    NOT NULL,  -- JSON: the plan without its steps
    created_at   INTEGER NOT NULL,
    completed_at INTEGER,
    context_type TEXT,  -- the kind of screen whose assistant makes it; NULL of those before this was noted
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE plan_steps_10 (
    tenant  TEXT    NOT NULL,
    user_id TEXT    NOT NULL,
    plan_id TEXT    NOT NULL REFERENCES plans_10 (id) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    status  TEXT    NOT NULL CHECK (status IN
        ('pending', 'executing', 'awaiting_approval', 'completed', 'failed', 'skipped', 'cancelled')),
    writes  INTEGER NOT NULL CHECK (writes IN (0, 1)),  -- 1: it may change something
    body    TEXT    NOT NULL,  -- JSON: the step
    error   TEXT,  -- why it ended with its run, where it did
    PRIMARY KEY (plan_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE executions_10 (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run_id       TEXT    NOT NULL,
    plan_id      TEXT,  -- NULL: a model has asked it directly
    status       TEXT    NOT NULL CHECK (status IN ('executing', 'awaiting_approval', 'completed', 'failed', 'cancelled')),
    body         TEXT    NOT NULL,  -- JSON: the task, the tools, the calls, the result; of one that waits, what it has said and read
    error        TEXT,  -- why it ended with its run, where it did
    started_at   INTEGER NOT NULL,
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

INSERT INTO plans_10 (id, tenant, user_id, conversation, run_id, status, body, created_at, completed_at)
    SELECT id, tenant, user_id, conversation, run_id, status, body, created_at, completed_at
    FROM plans;
INSERT INTO plan_steps_10 (tenant, user_id, plan_id, number, status, writes, body, error)
    SELECT tenant, user_id, plan_id, number, status, writes, body, error
    FROM plan_steps;
INSERT INTO executions_10 (id, tenant, user_id, conversation, run_id, plan_id, status, body, error, started_at)
    SELECT id, tenant, user_id, conversation, run_id, plan_id, status, body, error, started_at
    FROM executions;
DROP TABLE plan_steps;
DROP TABLE plans;
DROP TABLE executions;
ALTER TABLE plans_10 RENAME TO plans;
ALTER TABLE plan_steps_10 RENAME TO plan_steps;
ALTER TABLE executions_10 RENAME TO executions;

CREATE INDEX plans_of_conversation ON plans (tenant, user_id, conversation, created_at, id);
CREATE INDEX plans_waiting ON plans (tenant, user_id, conversation, created_at) WHERE status IN ('draft', 'held');
CREATE INDEX plans_executing ON plans (run_id) WHERE status = 'executing';
CREATE INDEX executions_of_conversation ON executions (tenant, user_id, conversation, started_at);
CREATE INDEX executions_of_plan ON executions (plan_id) WHERE plan_id IS NOT NULL;
CREATE INDEX executions_executing ON executions (run_id) WHERE status = 'executing';

CREATE TRIGGER plans_kept AFTER INSERT ON plans BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER plans_changed AFTER UPDATE OF body ON plans BEGIN
    UPDATE stored_usage SET bytes = bytes + octet_length(NEW.body) - octet_length(OLD.body)
    WHERE tenant = NEW.tenant AND user_id = NEW.user_id;
END;
CREATE TRIGGER plans_gone AFTER DELETE ON plans BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;

CREATE TRIGGER plan_steps_kept AFTER INSERT ON plan_steps BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER plan_steps_changed AFTER UPDATE OF body ON plan_steps BEGIN
    UPDATE stored_usage SET bytes = bytes + octet_length(NEW.body) - octet_length(OLD.body)
    WHERE tenant = NEW.tenant AND user_id = NEW.user_id;
END;
CREATE TRIGGER plan_steps_gone AFTER DELETE ON plan_steps BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;

CREATE TRIGGER executions_kept AFTER INSERT ON executions BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER executions_changed AFTER UPDATE OF body ON executions BEGIN
    UPDATE stored_usage SET bytes = bytes + octet_length(NEW.body) - octet_length(OLD.body)
    WHERE tenant = NEW.tenant AND user_id = NEW.user_id;
END;
CREATE TRIGGER executions_gone AFTER DELETE ON executions BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;

-- Calls that wait may be those of a plan's step, or of its sub-agent.
ALTER TABLE approvals ADD COLUMN plan_id TEXT;
ALTER TABLE approvals ADD COLUMN step INTEGER;
ALTER TABLE approvals ADD COLUMN agent_id TEXT;
CREATE INDEX approvals_of_plan ON approvals (plan_id) WHERE plan_id IS NOT NULL;
