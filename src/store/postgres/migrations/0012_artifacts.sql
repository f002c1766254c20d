-- Artifacts: what tools have made for the client's screen, each of a call.
CREATE TABLE artifacts (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C" NOT NULL,
    seq          BIGINT NOT NULL,  -- 0, 1, 2 … within the run
    call         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    body         TEXT NOT NULL,  -- JSON
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (run_id, seq),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX artifacts_of ON artifacts (tenant, user_id, conversation);

CREATE TRIGGER artifacts_kept AFTER INSERT ON artifacts REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER artifacts_gone AFTER DELETE ON artifacts REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();

-- Where transactions are held to row-level security already, the new table holds them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
