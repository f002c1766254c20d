-- The history of a directive: the signals that it caused, in their order.
CREATE INDEX signals_caused ON signals (tenant, causation, seq) WHERE causation IS NOT NULL;

-- Schedules: the newest time for which each has been requested.
CREATE TABLE schedules (
    name     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    fired_at BIGINT NOT NULL
);

-- The keys of requests. One that met a live directive of its intent stands for that one, whoever requested it.
CREATE TABLE directive_keys (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    request_key  TEXT COLLATE "C" NOT NULL,  -- SHA-256 of it
    came_with    TEXT NOT NULL,  -- SHA-256 of what was asked with it; empty for a model's call
    directive_id TEXT COLLATE "C" NOT NULL REFERENCES directives (id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, user_id, request_key)
);

CREATE INDEX directive_keys_of ON directive_keys (directive_id);
INSERT INTO directive_keys (tenant, user_id, request_key, came_with, directive_id)
    SELECT tenant, user_id, request_key, COALESCE(request_digest, ''), id FROM directives WHERE request_key IS NOT NULL;
DROP INDEX directives_by_key;
ALTER TABLE directives DROP COLUMN request_key;
ALTER TABLE directives DROP COLUMN request_digest;

-- Where transactions are held to row-level security already, the new table holds them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
