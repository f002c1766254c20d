-- Artifacts: what tools have made for the client's screen, each of a call.
CREATE TABLE artifacts (
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run_id       TEXT    NOT NULL,
    seq          INTEGER NOT NULL,  -- 0, 1, 2 … within the run
    call         TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    body         TEXT    NOT NULL,  -- JSON
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (run_id, seq),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX artifacts_of ON artifacts (tenant, user_id, conversation);

CREATE TRIGGER artifacts_kept AFTER INSERT ON artifacts BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER artifacts_gone AFTER DELETE ON artifacts BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;
