-- Calls that wait for a person, typed payloads, conversations under whole numbers. Whatever is added to a table has a default, so that
-- the version before this one goes on writing its rows.

-- What is long of a run, apart from its row, which is written anew with each lease. Only of runs that have something here.
CREATE TABLE run_details (
    run_id      TEXT NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    context     TEXT,  -- JSON: the screen state of its request
    answer      TEXT,  -- JSON: its answer as its user saw it, where its messages do not tell
    diagnostics TEXT   -- JSON: how it was carried out, where somebody may see that
) STRICT;

CREATE TABLE approvals (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run_id       TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    tool         TEXT    NOT NULL,
    arguments    TEXT    NOT NULL,  -- JSON text: as they are shown and sent
    input        TEXT    NOT NULL,  -- JSON text: the arguments as the model gave them
    digest       TEXT    NOT NULL,  -- of tool and arguments
    role         TEXT,              -- NULL: the run's own user decides
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'granted', 'approved', 'rejected')),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_at   INTEGER,
    decided_by   TEXT,              -- the user who granted or turned down another one's
    comment      TEXT,              -- JSON text
    decided_in   TEXT,              -- the run that went on with it, or that told the model of its end
    expired      INTEGER NOT NULL DEFAULT 0  -- whether the trail tells that nobody decided in time
) STRICT;

CREATE INDEX approvals_open ON approvals (tenant, user_id, conversation) WHERE decided_in IS NULL;
CREATE INDEX approvals_by_end ON approvals (expires_at) WHERE expired = 0 AND state IN ('pending', 'granted');
CREATE INDEX approvals_of_role ON approvals (tenant, role, state, created_at) WHERE role IS NOT NULL;
CREATE INDEX approvals_of_run ON approvals (run_id);
CREATE INDEX approvals_decided_in ON approvals (decided_in) WHERE decided_in IS NOT NULL;

CREATE TABLE payloads (
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    run_id       TEXT    NOT NULL,
    seq          INTEGER NOT NULL,  -- 0, 1, 2 … within the conversation, in the order in which they were kept
    kind         TEXT    NOT NULL,
    summary      TEXT    NOT NULL,  -- JSON text
    data         TEXT    NOT NULL,  -- JSON
    source       TEXT    NOT NULL CHECK (source IN ('tool', 'model')),
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation, id),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX payloads_in_order ON payloads (tenant, user_id, conversation, seq);
CREATE INDEX payloads_of_run ON payloads (run_id);

-- The number comes before the conversation's first run, so it names it without a foreign key.
CREATE TABLE chats (
    number       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    app          TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    UNIQUE (tenant, user_id, conversation)
) STRICT;

CREATE INDEX chats_of_app ON chats (tenant, user_id, app);
