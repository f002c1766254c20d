-- Plans that wait for a person in the middle.
ALTER TABLE plans DROP CONSTRAINT plans_status_check, ADD CONSTRAINT plans_status_check CHECK (status IN
    ('draft', 'held', 'executing', 'paused', 'completed', 'completed_with_errors', 'failed', 'cancelled'));
ALTER TABLE plan_steps DROP CONSTRAINT plan_steps_status_check, ADD CONSTRAINT plan_steps_status_check CHECK (status IN
    ('pending', 'executing', 'awaiting_approval', 'completed', 'failed', 'skipped', 'cancelled'));
ALTER TABLE executions DROP CONSTRAINT executions_status_check, ADD CONSTRAINT executions_status_check CHECK (status IN
    ('executing', 'awaiting_approval', 'completed', 'failed', 'cancelled'));
-- The kind of screen whose assistant makes it.
ALTER TABLE plans ADD COLUMN context_type TEXT COLLATE "C";

-- Calls that wait may be those of a plan's step, or of its sub-agent.
ALTER TABLE approvals ADD COLUMN plan_id TEXT COLLATE "C";
ALTER TABLE approvals ADD COLUMN step BIGINT;
ALTER TABLE approvals ADD COLUMN agent_id TEXT COLLATE "C";
CREATE INDEX approvals_of_plan ON approvals (plan_id) WHERE plan_id IS NOT NULL;
-- Directives: commands that outlive their request. The row is the queue.
CREATE TABLE directives (
    id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant         TEXT COLLATE "C" NOT NULL,
    user_id        TEXT COLLATE "C" NOT NULL,
    name           TEXT COLLATE "C" NOT NULL,
    status         TEXT NOT NULL CHECK (status IN
        ('pending_approval', 'requested', 'running', 'succeeded', 'canceled', 'failed', 'unknown')),
    reason         TEXT CHECK (reason IN ('canceled', 'rejected', 'expired', 'caller_gone')),
    runs_as        TEXT NOT NULL CHECK (runs_as IN ('caller', 'service')),
    conversation   TEXT COLLATE "C",  -- of the call that made it; it may be gone
    subject_type   TEXT COLLATE "C",
    subject_id     TEXT COLLATE "C",
    correlation    TEXT COLLATE "C" NOT NULL,
    causation      TEXT COLLATE "C",
    request_key    TEXT COLLATE "C",  -- SHA-256 of the request's key
    request_digest TEXT,  -- SHA-256 of what came with that key
    intent         TEXT COLLATE "C",
    attempt        BIGINT NOT NULL DEFAULT 0,
    max_attempts   BIGINT NOT NULL,
    in_doubt       BIGINT NOT NULL DEFAULT 0 CHECK (in_doubt IN (0, 1)),  -- 1: an attempt since the request or the rerun may have been done
    token          BIGINT NOT NULL DEFAULT 0,  -- grows with each claim
    lease_owner    TEXT,
    lease_until    BIGINT,
    sent_at        BIGINT,  -- when the bytes of the attempt under way began to go out
    due_at         BIGINT NOT NULL,
    role           TEXT COLLATE "C",  -- that a decision asks for
    digest         TEXT,
    expires_at     BIGINT,
    decided_by     TEXT COLLATE "C",
    decided_at     BIGINT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    started_at     BIGINT,
    completed_at   BIGINT,
    body           TEXT NOT NULL  -- JSON: payload, roles, key, consent, comment, result, text, error
);

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
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq    BIGINT NOT NULL
);

CREATE TABLE signals (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    seq          BIGINT NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    dedupe_key   TEXT COLLATE "C",
    actor        TEXT COLLATE "C",
    subject_type TEXT COLLATE "C",
    subject_id   TEXT COLLATE "C",
    correlation  TEXT COLLATE "C",
    causation    TEXT COLLATE "C",
    source       TEXT NOT NULL CHECK (source IN ('directives', 'api', 'runs')),
    occurred_at  BIGINT NOT NULL,
    inserted_at  BIGINT NOT NULL,
    body         TEXT NOT NULL  -- JSON: payload, metadata
);

CREATE UNIQUE INDEX signals_in_order ON signals (tenant, seq);
CREATE UNIQUE INDEX signals_once ON signals (tenant, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX signals_named ON signals (tenant, name, seq);
CREATE INDEX signals_of_subject ON signals (tenant, subject_type, subject_id, seq) WHERE subject_id IS NOT NULL;
CREATE INDEX signals_correlated ON signals (tenant, correlation, seq) WHERE correlation IS NOT NULL;
CREATE INDEX signals_of_actor ON signals (tenant, actor, seq) WHERE actor IS NOT NULL;
CREATE INDEX signals_old ON signals (inserted_at);

-- What subscribers have to be told.
CREATE TABLE deliveries (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    signal_id    TEXT COLLATE "C" NOT NULL REFERENCES signals (id) ON DELETE CASCADE,
    subscriber   TEXT COLLATE "C" NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'dead')),
    attempts     BIGINT NOT NULL DEFAULT 0,
    token        BIGINT NOT NULL DEFAULT 0,
    due_at       BIGINT NOT NULL,
    lease_until  BIGINT,
    last_status  BIGINT,
    last_error   TEXT,
    created_at   BIGINT NOT NULL,
    delivered_at BIGINT
);

CREATE UNIQUE INDEX deliveries_once ON deliveries (signal_id, subscriber);
CREATE INDEX deliveries_due ON deliveries (subscriber, due_at, id) WHERE status = 'pending';
CREATE INDEX deliveries_of_tenant ON deliveries (tenant, created_at, id);

-- What they hold counts as all else that a user keeps.
CREATE TRIGGER directives_counted AFTER INSERT OR UPDATE OF body OR DELETE ON directives FOR EACH ROW EXECUTE FUNCTION body_changed();

-- Where transactions are held to row-level security already, the new tables hold them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
