-- The library of a user's conversations: pinned and archived ones, what is found by its words, and feedback on answers. Whatever is
-- added has a default, so that the version before this one goes on writing its rows.

ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversations_shelved ON conversations (tenant, user_id, archived, pinned, updated_at, id) WHERE unlisted = 0;

-- What is said is indexed by the first search behind it. A row here is no statement of whoever writes: it is 0 by itself.
ALTER TABLE conversations ADD COLUMN title_indexed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversations_unindexed ON conversations (tenant, user_id, id) WHERE title_indexed = 0 AND title IS NOT NULL;
CREATE INDEX runs_unindexed ON runs (tenant, user_id, started_at) WHERE indexed = 0;

-- The words of a message that users see, or of a title: `run_seq` and `seq` are -1 then. Each begins with its owner's mark, so that the
-- words of one owner stand together in the index.
CREATE TABLE search_texts (
    id           INTEGER NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run_seq      INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    at           INTEGER NOT NULL,  -- when it was said
    words        TEXT    NOT NULL,  -- with blanks between them, each once
    UNIQUE (tenant, user_id, conversation, run_seq, seq),
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

-- It has no copy of the words, and knows of each only in which rows it is. The words are ours: this tokenizer only splits them.
CREATE VIRTUAL TABLE search_index USING fts5 (words, content = '', tokenize = 'ascii', detail = 'none', columnsize = 0);
-- What is deleted is taken out of the index at once, and not only marked.
INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER search_texts_kept AFTER INSERT ON search_texts BEGIN
    INSERT INTO search_index (rowid, words) VALUES (NEW.id, NEW.words);
END;
CREATE TRIGGER search_texts_gone AFTER DELETE ON search_texts BEGIN
    INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', OLD.id, OLD.words);
END;

-- What a user thinks of the answer of a run.
CREATE TABLE feedback (
    run_id       TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    score        INTEGER NOT NULL CHECK (score IN (-1, 1)),
    body         TEXT    NOT NULL,  -- JSON: the comment and the tags
    given_at     INTEGER NOT NULL,
    FOREIGN KEY (tenant, user_id, conversation) REFERENCES conversations (tenant, user_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX feedback_of ON feedback (tenant, user_id, conversation);

CREATE TRIGGER feedback_kept AFTER INSERT ON feedback BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER feedback_gone AFTER DELETE ON feedback BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;
