-- What a conversation has apart from its runs, and perhaps before its first one. Without a foreign key: it may be there first.
CREATE TABLE conversation_state (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    opened_at    BIGINT NOT NULL,
    unused       BIGINT NOT NULL CHECK (unused IN (0, 1)),  -- 1: no run has begun
    title        TEXT,  -- that its conversation gets with its first run
    place        TEXT,  -- JSON: context_type, entity_id, entity_name, focus
    PRIMARY KEY (tenant, user_id, conversation)
);

CREATE INDEX conversation_state_unused ON conversation_state (opened_at) WHERE unused = 1;
CREATE INDEX conversation_state_unused_of ON conversation_state (tenant, user_id, opened_at) WHERE unused = 1;

-- Where transactions are held to row-level security already, the new table holds them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
