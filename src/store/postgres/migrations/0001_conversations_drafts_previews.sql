-- Times are milliseconds since the Unix epoch, UTC. Every table carries its owner (tenant, user_id): each statement names it.
-- What is compared, sorted or part of a key is collated "C": byte by byte, wherever the server runs.

CREATE TABLE conversations (
    tenant     TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    profile    TEXT             NOT NULL,  -- of the newest run
    created_at BIGINT           NOT NULL,
    updated_at BIGINT           NOT NULL,  -- when the newest run began
    PRIMARY KEY (tenant, user_id, id)
);

CREATE TABLE runs (
    id                  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant              TEXT COLLATE "C" NOT NULL,
    user_id             TEXT COLLATE "C" NOT NULL,
    conversation        TEXT COLLATE "C" NOT NULL,
    run_seq             BIGINT           NOT NULL,  -- 0, 1, 2 … in the order of their start
    started_at          BIGINT           NOT NULL,
    finished_at         BIGINT,
    outcome             TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled')),  -- NULL while running
    failure_code        TEXT,
    input_tokens        BIGINT           NOT NULL DEFAULT 0,
    output_tokens       BIGINT           NOT NULL DEFAULT 0,
    cached_input_tokens BIGINT           NOT NULL DEFAULT 0,
    reasoning_tokens    BIGINT           NOT NULL DEFAULT 0,
    UNIQUE (tenant, user_id, conversation, run_seq),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE TABLE messages (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    run_seq      BIGINT           NOT NULL,
    seq          BIGINT           NOT NULL,  -- 0, 1, 2 … within the run
    kind         TEXT             NOT NULL,
    body         TEXT             NOT NULL,  -- JSON
    PRIMARY KEY (tenant, user_id, conversation, run_seq, seq),
    FOREIGN KEY (tenant, user_id, conversation, run_seq)
        REFERENCES runs (tenant, user_id, conversation, run_seq) ON DELETE CASCADE
);

-- Drafts and previews name their conversation without a foreign key: a tool may keep one before anything was said.

CREATE TABLE drafts (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    body         TEXT             NOT NULL,  -- JSON
    revision     BIGINT           NOT NULL,
    expires_at   BIGINT           NOT NULL
);

CREATE INDEX drafts_of_owner ON drafts (tenant, user_id, expires_at);
CREATE INDEX drafts_by_end ON drafts (expires_at);

CREATE TABLE previews (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    change       TEXT             NOT NULL,  -- JSON
    state        TEXT             NOT NULL CHECK (state IN ('pending', 'claimed', 'accepted', 'rejected')),
    created_at   BIGINT           NOT NULL,
    claimed_at   BIGINT,
    decided_at   BIGINT,
    decision     TEXT,                       -- JSON
    told_in_run  TEXT COLLATE "C"            -- the run whose user message told the model
);

CREATE INDEX previews_decided ON previews (tenant, user_id, conversation, state, decided_at, id);
