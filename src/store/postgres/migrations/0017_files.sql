-- Files of users: what is known of each, and the conversations that need it. Their bytes are kept apart.
CREATE TABLE files (
    tenant     TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    sha256     BYTEA  NOT NULL,
    media_type TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    side       BIGINT NOT NULL,  -- the longer one of a picture, in pixels
    created_at BIGINT NOT NULL,
    used       BIGINT NOT NULL DEFAULT 0,  -- whether a conversation has needed it
    purpose    TEXT   NOT NULL DEFAULT 'user_data',
    expires_at BIGINT,  -- in any case; NULL: as conversations need it
    PRIMARY KEY (tenant, user_id, id),
    UNIQUE (tenant, user_id, sha256)
);

CREATE INDEX files_newest ON files (tenant, user_id, created_at, id);
CREATE INDEX files_unused ON files (used, created_at);
CREATE INDEX files_expired ON files (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE file_uses (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    file_id      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, user_id, file_id, conversation),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant, user_id, file_id) REFERENCES files (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX file_uses_of ON file_uses (tenant, user_id, conversation);

-- Bytes to be removed: of rows that are gone, and of files that were never kept.
CREATE TABLE file_removals (
    file_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL
);

CREATE INDEX file_removals_at ON file_removals (at);

CREATE FUNCTION file_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO file_removals (file_id, at) SELECT id, 0 FROM gone ON CONFLICT (file_id) DO UPDATE SET at = 0;
    RETURN NULL;
END $$;

CREATE TRIGGER files_gone AFTER DELETE ON files REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION file_gone();

ALTER TABLE runs ADD COLUMN direct BIGINT NOT NULL DEFAULT 0;  -- whether it asks no model: its client has one, which has called a tool

-- Where transactions are held to row-level security already, the new tables hold them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
