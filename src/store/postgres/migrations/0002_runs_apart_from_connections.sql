-- Runs that outlive connections and processes; branches, summaries, the trail. Whatever is added has a default, so that the version
-- before this one goes on writing its rows: those have no state, and their outcome tells.

ALTER TABLE conversations ADD COLUMN title TEXT;                     -- NULL: the beginning of its first message
ALTER TABLE conversations ADD COLUMN context_type TEXT;              -- of the newest run; NULL in rows of version 1: the profile

ALTER TABLE runs ADD COLUMN state TEXT
    CHECK (state IN ('queued', 'running', 'awaiting_approval', 'completed', 'failed', 'cancelled', 'interrupted'));
ALTER TABLE runs ADD COLUMN context_type TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN background BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN replica TEXT NOT NULL DEFAULT '';        -- the process that runs it
ALTER TABLE runs ADD COLUMN lease_until BIGINT NOT NULL DEFAULT 0;  -- by the database's own clock
ALTER TABLE runs ADD COLUMN watched_until BIGINT NOT NULL DEFAULT 0; -- until then somebody reads it through another replica
ALTER TABLE runs ADD COLUMN cancel_requested BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN turns BIGINT NOT NULL DEFAULT 0;        -- model calls that have ended and are committed
ALTER TABLE runs ADD COLUMN calling TEXT;                            -- JSON: the turn after those with its calls, once a write was dispatched
ALTER TABLE runs ADD COLUMN last_event_id BIGINT;
ALTER TABLE runs ADD COLUMN seen_before BIGINT;                     -- messages that a user sees on the branch before it; NULL: to be counted
ALTER TABLE runs ADD COLUMN seen_own BIGINT;                        -- and those of its own, once it has ended
ALTER TABLE runs ADD COLUMN failure_message TEXT;
ALTER TABLE runs ADD COLUMN failure_retryable BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN parent_run_seq BIGINT;                  -- the run it goes on from; NULL: none, it is at the root
ALTER TABLE runs ADD COLUMN parent_seq BIGINT;                      -- that run's message it goes on from; NULL: its last one
ALTER TABLE runs ADD COLUMN continues TEXT;                          -- the run that it continues
ALTER TABLE runs ADD COLUMN request_key TEXT COLLATE "C";                        -- the client's idempotency key; NULL again when its day is over
ALTER TABLE runs ADD COLUMN request_digest BYTEA;

-- What a beat changes every second stands in no index, and its new version has room on the same page.
ALTER TABLE runs SET (fillfactor = 80);

-- Until now conversations were straight, and a run without outcome is one whose process died.
UPDATE runs SET
    state = COALESCE(outcome, 'interrupted'),
    finished_at = COALESCE(finished_at, started_at),
    context_type = (SELECT c.profile FROM conversations c
                    WHERE c.tenant = runs.tenant AND c.user_id = runs.user_id AND c.id = runs.conversation),
    parent_run_seq = CASE WHEN run_seq > 0 THEN run_seq - 1 END;

CREATE UNIQUE INDEX runs_one_running ON runs (tenant, user_id, conversation) WHERE state = 'running';
CREATE INDEX runs_queued ON runs (tenant, user_id, conversation, run_seq) WHERE state = 'queued';
CREATE INDEX runs_live ON runs (id) WHERE state IN ('queued', 'running');
CREATE INDEX runs_keyed ON runs (started_at) WHERE request_key IS NOT NULL;
CREATE UNIQUE INDEX runs_request_key ON runs (tenant, user_id, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX conversations_newest ON conversations (tenant, user_id, updated_at, id);

ALTER TABLE messages ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0; -- 0 in rows of version 1: when the run began
ALTER TABLE messages ADD COLUMN fates TEXT;                           -- JSON: of tool_results, what became of each call; NULL in rows of version 1

-- Writes that were sent, each at most once. The key is a digest of the call's id, which may be long.
CREATE TABLE dispatches (
    run_id   TEXT COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    call_key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, call_key)
);

-- What the turn of a live run that streams has said so far, in pieces; gone with the turn's commit.
CREATE TABLE partials (
    run_id TEXT COLLATE "C"   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    turn   BIGINT NOT NULL,
    at     BIGINT NOT NULL,  -- where it begins in the turn's text, in bytes
    body   TEXT    NOT NULL,  -- JSON text
    PRIMARY KEY (run_id, turn, at)
);

-- A summary stands for everything on the branch of the run `upto_run_seq`, that run included.
CREATE TABLE summaries (
    tenant       TEXT COLLATE "C"    NOT NULL,
    user_id      TEXT COLLATE "C"    NOT NULL,
    conversation TEXT COLLATE "C"    NOT NULL,
    upto_run_seq BIGINT  NOT NULL,
    body         TEXT    NOT NULL,  -- JSON text
    created_at   BIGINT  NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation, upto_run_seq),
    FOREIGN KEY (tenant, user_id, conversation, upto_run_seq)
        REFERENCES runs (tenant, user_id, conversation, run_seq) ON DELETE CASCADE
);

CREATE TABLE trail (
    id           BIGINT  NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    tenant       TEXT COLLATE "C"    NOT NULL,
    user_id      TEXT COLLATE "C"    NOT NULL,
    conversation TEXT COLLATE "C"    NOT NULL,
    run_id       TEXT,              -- NULL: it happened in no run
    seq          BIGINT ,           -- 0, 1, 2 … within the run
    at           BIGINT  NOT NULL,
    kind         TEXT    NOT NULL,
    body         TEXT    NOT NULL,  -- JSON, secrets taken out
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX trail_of_run ON trail (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX trail_of_conversation ON trail (tenant, user_id, conversation, id);
CREATE INDEX trail_by_age ON trail (at);
