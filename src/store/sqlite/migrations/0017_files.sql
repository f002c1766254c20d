-- Files of users: what is known of each, and the conversations that need it. Their bytes are kept apart.
CREATE TABLE files (
    tenant     TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    sha256     BLOB    NOT NULL,
    media_type TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    side       INTEGER NOT NULL,  -- the longer one of a picture, in pixels
    created_at INTEGER NOT NULL,
    used       INTEGER NOT NULL DEFAULT 0,  -- whether a conversation has needed it
    purpose    TEXT    NOT NULL DEFAULT 'user_data',
    expires_at INTEGER,  -- in any case; NULL: as conversations need it
    PRIMARY KEY (tenant, user_id, id),
    UNIQUE (tenant, user_id, sha256)
) STRICT, WITHOUT ROWID;

CREATE INDEX files_newest ON files (tenant, user_id, created_at, id);
CREATE INDEX files_unused ON files (used, created_at);
CREATE INDEX files_expired ON files (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE file_uses (
    tenant       TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    file_id      TEXT NOT NULL,
    PRIMARY KEY (tenant, user_id, file_id, conversation),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant, user_id, file_id) REFERENCES files (tenant, user_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX file_uses_of ON file_uses (tenant, user_id, conversation);

-- Bytes to be removed: of rows that are gone, and of files that were never kept.
CREATE TABLE file_removals (
    file_id TEXT    NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX file_removals_at ON file_removals (at);

CREATE TRIGGER files_gone AFTER DELETE ON files BEGIN
    INSERT INTO file_removals (file_id, at) VALUES (OLD.id, 0) ON CONFLICT (file_id) DO UPDATE SET at = 0;
END;

ALTER TABLE runs ADD COLUMN direct INTEGER NOT NULL DEFAULT 0;  -- whether it asks no model: its client has one, which has called a tool
