-- Calls that wait for a person, typed payloads, conversations under whole numbers. Whatever is added to a table has a default, so that
-- the version before this one goes on writing its rows.

-- What is long of a run, apart from its row, which is written anew with each lease. Only of runs that have something here.
CREATE TABLE run_details (
    run_id      TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    context     TEXT,  -- JSON: the screen state of its request
    answer      TEXT,  -- JSON: its answer as its user saw it, where its messages do not tell
    diagnostics TEXT   -- JSON: how it was carried out, where somebody may see that
);

CREATE TABLE approvals (
    id           TEXT COLLATE "C"    NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C"    NOT NULL,
    user_id      TEXT COLLATE "C"    NOT NULL,
    conversation TEXT COLLATE "C"    NOT NULL,
    run_id       TEXT COLLATE "C"    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    tool         TEXT    NOT NULL,
    arguments    TEXT    NOT NULL,  -- JSON text: as they are shown and sent
    input        TEXT    NOT NULL,  -- JSON text: the arguments as the model gave them
    digest       TEXT COLLATE "C"    NOT NULL,  -- of tool and arguments
    role         TEXT,              -- NULL: the run's own user decides
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'granted', 'approved', 'rejected')),
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    decided_at   BIGINT,
    decided_by   TEXT,              -- the user who granted or turned down another one's
    comment      TEXT,              -- JSON text
    decided_in   TEXT COLLATE "C",              -- the run that went on with it, or that told the model of its end
    expired      BIGINT NOT NULL DEFAULT 0  -- whether the trail tells that nobody decided in time
);

CREATE INDEX approvals_open ON approvals (tenant, user_id, conversation) WHERE decided_in IS NULL;
CREATE INDEX approvals_by_end ON approvals (expires_at) WHERE expired = 0 AND state IN ('pending', 'granted');
CREATE INDEX approvals_of_role ON approvals (tenant, role, state, created_at) WHERE role IS NOT NULL;
CREATE INDEX approvals_of_run ON approvals (run_id);
CREATE INDEX approvals_decided_in ON approvals (decided_in) WHERE decided_in IS NOT NULL;

CREATE TABLE payloads (
    tenant       TEXT COLLATE "C"    NOT NULL,
    user_id      TEXT COLLATE "C"    NOT NULL,
    conversation TEXT COLLATE "C"    NOT NULL,
    id           TEXT COLLATE "C"    NOT NULL,
    run_id       TEXT COLLATE "C"    NOT NULL,
    seq          BIGINT NOT NULL,  -- 0, 1, 2 … within the conversation, in the order in which they were kept
    kind         TEXT    NOT NULL,
    summary      TEXT    NOT NULL,  -- JSON text
    data         TEXT    NOT NULL,  -- JSON
    source       TEXT    NOT NULL CHECK (source IN ('tool', 'model')),
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation, id),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX payloads_in_order ON payloads (tenant, user_id, conversation, seq);
CREATE INDEX payloads_of_run ON payloads (run_id);

-- The number comes before the conversation's first run, so it names it without a foreign key.
CREATE TABLE chats (
    number       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       TEXT COLLATE "C"    NOT NULL,
    user_id      TEXT COLLATE "C"    NOT NULL,
    conversation TEXT COLLATE "C"    NOT NULL,
    app          TEXT COLLATE "C"    NOT NULL,
    created_at   BIGINT NOT NULL,
    UNIQUE (tenant, user_id, conversation)
);

CREATE INDEX chats_of_app ON chats (tenant, user_id, app);
