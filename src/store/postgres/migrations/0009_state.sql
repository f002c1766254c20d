-- What runs leave of the state of a conversation, and the figures of summaries.
ALTER TABLE conversation_state ADD COLUMN recap TEXT;          -- JSON: what its newest turn was about
ALTER TABLE conversation_state ADD COLUMN context_usage TEXT;  -- JSON: how much of it its newest run has read
ALTER TABLE conversation_state ADD COLUMN labels TEXT;         -- JSON: what a helper calls it
ALTER TABLE conversation_state ADD COLUMN clarification TEXT;  -- JSON: what was said and asked before an answer

-- In estimated tokens. NULL: kept by an earlier version.
ALTER TABLE summaries ADD COLUMN original_tokens BIGINT;
ALTER TABLE summaries ADD COLUMN tokens BIGINT;

-- What things of a conversation are called, as results and data said: the newest 2,000.
CREATE TABLE conversation_names (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    thing        TEXT COLLATE "C" NOT NULL,  -- its id
    name         TEXT NOT NULL,
    noted_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation, thing),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX conversation_names_noted ON conversation_names (tenant, user_id, conversation, noted_at);

-- 1: made for its first message to find it, which then goes on there.
ALTER TABLE conversation_state ADD COLUMN ahead BIGINT NOT NULL DEFAULT 0 CHECK (ahead IN (0, 1));

-- When data with a tag changed last: what was loaded for prompts before is stale.
CREATE TABLE data_changes (
    tenant     TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    tag        TEXT COLLATE "C" NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, user_id, tag)
);

CREATE INDEX data_changes_changed ON data_changes (changed_at);

-- Where transactions are held to row-level security already, the new tables hold them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
