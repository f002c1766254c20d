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
-- Directives: commands that outlive their request. The row is the queue.
CREATE TABLE directives (
    id             TEXT NOT NULL PRIMARY KEY,
    tenant         TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    name           TEXT NOT NULL,
    status         TEXT NOT NULL CHECK (status IN
        ('pending_approval', 'requested', 'running', 'succeeded', 'canceled', 'failed', 'unknown')),
    reason         TEXT CHECK (reason IN ('canceled', 'rejected', 'expired', 'caller_gone')),
    runs_as        TEXT NOT NULL CHECK (runs_as IN ('caller', 'service')),
    conversation   TEXT,  -- of the call that made it; it may be gone
    subject_type   TEXT,
    subject_id     TEXT,
    correlation    TEXT NOT NULL,
    causation      TEXT,
    request_key    TEXT,  -- SHA-256 of the request's key
    request_digest TEXT,  -- SHA-256 of what came with that key
    intent         TEXT,
    attempt        INTEGER NOT NULL DEFAULT 0,
    max_attempts   INTEGER NOT NULL,
    in_doubt       INTEGER NOT NULL DEFAULT 0 CHECK (in_doubt IN (0, 1)),  -- 1: an attempt since the request or the rerun may have been done
    token          INTEGER NOT NULL DEFAULT 0,  -- grows with each claim
    lease_owner    TEXT,
    lease_until    INTEGER,
    sent_at        INTEGER,  -- when the bytes of the attempt under way began to go out
    due_at         INTEGER NOT NULL,
    role           TEXT,  -- that a decision asks for
    digest         TEXT,
    expires_at     INTEGER,
    decided_by     TEXT,
    decided_at     INTEGER,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    started_at     INTEGER,
    completed_at   INTEGER,
    body           TEXT NOT NULL  -- JSON: payload, roles, key, consent, comment, result, text, error
) STRICT;

CREATE UNIQUE INDEX directives_by_key ON directives (tenant, user_id, request_key) WHERE request_key IS NOT NULL;
CREATE UNIQUE INDEX directives_live_intent ON directives (tenant, name, intent)
    WHERE intent IS NOT NULL AND status IN ('pending_approval', 'requested', 'running');
CREATE INDEX directives_due ON directives (due_at, id) WHERE status = 'requested';
CREATE INDEX directives_of_callers ON directives (updated_at) WHERE status = 'requested' AND runs_as = 'caller';
CREATE INDEX directives_running ON directives (lease_until) WHERE status = 'running';
CREATE INDEX directives_pending ON directives (expires_at) WHERE status = 'pending_approval';
CREATE INDEX directives_live ON directives (tenant, user_id) WHERE status IN ('pending_approval', 'requested', 'running');
CREATE INDEX directives_of_user ON directives (tenant, user_id, created_at, id);
CREATE INDEX directives_of_tenant ON directives (tenant, created_at, id);
CREATE INDEX directives_asking ON directives (tenant, role, created_at) WHERE status = 'pending_approval' AND role IS NOT NULL;
CREATE INDEX directives_of_subject ON directives (tenant, subject_type, subject_id) WHERE subject_id IS NOT NULL;
CREATE INDEX directives_correlated ON directives (tenant, correlation);
CREATE INDEX directives_over ON directives (completed_at) WHERE completed_at IS NOT NULL;

-- Signals: facts of a tenant, numbered in the order of their commit.
CREATE TABLE signal_numbers (
    tenant TEXT NOT NULL PRIMARY KEY,
    seq    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE signals (
    id           TEXT NOT NULL PRIMARY KEY,
    tenant       TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    name         TEXT NOT NULL,
    dedupe_key   TEXT,
    actor        TEXT,
    subject_type TEXT,
    subject_id   TEXT,
    correlation  TEXT,
    causation    TEXT,
    source       TEXT NOT NULL CHECK (source IN ('directives', 'api', 'runs')),
    occurred_at  INTEGER NOT NULL,
    inserted_at  INTEGER NOT NULL,
    body         TEXT NOT NULL  -- JSON: payload, metadata
) STRICT;

CREATE UNIQUE INDEX signals_in_order ON signals (tenant, seq);
CREATE UNIQUE INDEX signals_once ON signals (tenant, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX signals_named ON signals (tenant, name, seq);
CREATE INDEX signals_of_subject ON signals (tenant, subject_type, subject_id, seq) WHERE subject_id IS NOT NULL;
CREATE INDEX signals_correlated ON signals (tenant, correlation, seq) WHERE correlation IS NOT NULL;
CREATE INDEX signals_of_actor ON signals (tenant, actor, seq) WHERE actor IS NOT NULL;
CREATE INDEX signals_old ON signals (inserted_at);

-- What subscribers have to be told.
CREATE TABLE deliveries (
    id           TEXT NOT NULL PRIMARY KEY,
    tenant       TEXT NOT NULL,
    signal_id    TEXT NOT NULL REFERENCES signals (id) ON DELETE CASCADE,
    subscriber   TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'dead')),
    attempts     INTEGER NOT NULL DEFAULT 0,
    token        INTEGER NOT NULL DEFAULT 0,
    due_at       INTEGER NOT NULL,
    lease_until  INTEGER,
    last_status  INTEGER,
    last_error   TEXT,
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER
) STRICT;

CREATE UNIQUE INDEX deliveries_once ON deliveries (signal_id, subscriber);
CREATE INDEX deliveries_due ON deliveries (subscriber, due_at, id) WHERE status = 'pending';
CREATE INDEX deliveries_of_tenant ON deliveries (tenant, created_at, id);

-- What they hold counts as all else that a user keeps.
CREATE TRIGGER directives_kept AFTER INSERT ON directives BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER directives_changed AFTER UPDATE OF body ON directives BEGIN
    UPDATE stored_usage SET bytes = bytes + octet_length(NEW.body) - octet_length(OLD.body)
    WHERE tenant = NEW.tenant AND user_id = NEW.user_id;
END;
CREATE TRIGGER directives_gone AFTER DELETE ON directives BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;
