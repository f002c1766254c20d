-- Times are milliseconds since the Unix epoch, UTC. Every table carries its owner (tenant, user_id): each statement names it.

CREATE TABLE conversations (
    tenant     TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    profile    TEXT    NOT NULL,  -- of the newest run
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,  -- when the newest run began
    PRIMARY KEY (tenant, user_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id                  TEXT    NOT NULL PRIMARY KEY,
    tenant              TEXT    NOT NULL,
    user_id             TEXT    NOT NULL,
    conversation        TEXT    NOT NULL,
    run_seq             INTEGER NOT NULL,  -- 0, 1, 2 … in the order of their start
    started_at          INTEGER NOT NULL,
    finished_at         INTEGER,
    outcome             TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled')),  -- NULL while running
    failure_code        TEXT,
    input_tokens        INTEGER NOT NULL DEFAULT 0,
    output_tokens       INTEGER NOT NULL DEFAULT 0,
    cached_input_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens    INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, user_id, conversation, run_seq),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE messages (
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run_seq      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,  -- 0, 1, 2 … within the run
    kind         TEXT    NOT NULL,
    body         TEXT    NOT NULL,  -- JSON
    PRIMARY KEY (tenant, user_id, conversation, run_seq, seq),
    FOREIGN KEY (tenant, user_id, conversation, run_seq)
        REFERENCES runs (tenant, user_id, conversation, run_seq) ON DELETE CASCADE
) STRICT;

-- Drafts and previews name their conversation without a foreign key: a tool may keep one before anything was said.

CREATE TABLE drafts (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    body         TEXT    NOT NULL,  -- JSON
    revision     INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX drafts_of_owner ON drafts (tenant, user_id, expires_at);
CREATE INDEX drafts_by_end ON drafts (expires_at);

CREATE TABLE previews (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    change       TEXT    NOT NULL,  -- JSON
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'claimed', 'accepted', 'rejected')),
    created_at   INTEGER NOT NULL,
    claimed_at   INTEGER,
    decided_at   INTEGER,
    decision     TEXT,              -- JSON
    told_in_run  TEXT               -- the run whose user message told the model
) STRICT;

CREATE INDEX previews_decided ON previews (tenant, user_id, conversation, state, decided_at, id);
