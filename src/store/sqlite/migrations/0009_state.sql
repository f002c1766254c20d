-- What runs leave of the state of a conversation, and the figures of summaries.
ALTER TABLE conversation_state ADD COLUMN recap TEXT;          -- JSON: what its newest turn was about
ALTER TABLE conversation_state ADD COLUMN context_usage TEXT;  -- JSON: how much of it its newest run has read
ALTER TABLE conversation_state ADD COLUMN labels TEXT;         -- JSON: what a helper calls it
ALTER TABLE conversation_state ADD COLUMN clarification TEXT;  -- JSON: what was said and asked before an answer

-- In estimated tokens. NULL: kept by an earlier version.
ALTER TABLE summaries ADD COLUMN original_tokens INTEGER;
ALTER TABLE summaries ADD COLUMN tokens INTEGER;

-- What things of a conversation are called, as results and data said: the newest 2,000.
CREATE TABLE conversation_names (
    tenant       TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thing        TEXT NOT NULL,  -- its id
    name         TEXT NOT NULL,
    noted_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id, conversation, thing),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX conversation_names_noted ON conversation_names (tenant, user_id, conversation, noted_at);

-- 1: made for its first message to find it, which then goes on there.
ALTER TABLE conversation_state ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0 CHECK (ahead IN (0, 1));

-- When data with a tag changed last: what was loaded for prompts before is stale.
CREATE TABLE data_changes (
    tenant     TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    tag        TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX data_changes_changed ON data_changes (changed_at);
