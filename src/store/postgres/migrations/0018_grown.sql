-- What grows is looked up by an index: the approvals of a conversation, decided ones too, and files by their id alone.
CREATE INDEX approvals_of ON approvals (tenant, user_id, conversation, created_at, id);
CREATE UNIQUE INDEX files_by_id ON files (id);

-- A conversation is one user's, and a user one tenant's. Who does not know that multiplies the shares of the three, takes the
-- rows of a conversation for one, and goes through all of them for each of them.
CREATE STATISTICS runs_together (dependencies) ON tenant, user_id, conversation FROM runs;
CREATE STATISTICS messages_together (dependencies) ON tenant, user_id, conversation FROM messages;
CREATE STATISTICS trail_together (dependencies) ON tenant, user_id, conversation FROM trail;

-- They are known from the next look at the tables on, which a new database does not need.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM runs) THEN
        ANALYZE runs, messages, trail;
    END IF;
END $$;
