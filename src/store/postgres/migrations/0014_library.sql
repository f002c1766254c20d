-- The library of a user's conversations: pinned and archived ones, what is found by its words, and feedback on answers. Whatever is
-- added has a default, so that the version before this one goes on writing its rows.

ALTER TABLE conversations ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN archived BIGINT NOT NULL DEFAULT 0;
CREATE INDEX conversations_shelved ON conversations (tenant, user_id, archived, pinned, updated_at, id) WHERE unlisted = 0;

-- What is said is indexed by the first search behind it. A row here is no statement of whoever writes: it is 0 by itself.
ALTER TABLE conversations ADD COLUMN title_indexed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0;
CREATE INDEX conversations_unindexed ON conversations (tenant, user_id, id) WHERE title_indexed = 0 AND title IS NOT NULL;
CREATE INDEX runs_unindexed ON runs (tenant, user_id, started_at) WHERE indexed = 0;

-- The words of a message that users see, or of a title: `run_seq` and `seq` are -1 then. Each begins with its owner's mark, so that the
-- words of one owner stand together in the index.
CREATE TABLE search_texts (
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    run_seq      BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    at           BIGINT NOT NULL,  -- when it was said
    words        TSVECTOR NOT NULL,  -- without places
    PRIMARY KEY (tenant, user_id, conversation, run_seq, seq),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX search_index ON search_texts USING gin (words);

-- What a user thinks of the answer of a run.
CREATE TABLE feedback (
    run_id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant       TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    score        BIGINT NOT NULL CHECK (score IN (-1, 1)),
    body         TEXT NOT NULL,  -- JSON: the comment and the tags
    given_at     BIGINT NOT NULL,
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
);

CREATE INDEX feedback_of ON feedback (tenant, user_id, conversation);

CREATE TRIGGER feedback_kept AFTER INSERT ON feedback REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER feedback_gone AFTER DELETE ON feedback REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();

-- Where transactions are held to row-level security already, the new tables hold them too.
SELECT switchboard_row_security(TRUE) FROM pg_class WHERE oid = 'runs'::regclass AND relrowsecurity;
