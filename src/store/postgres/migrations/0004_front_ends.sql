-- What front ends need: what a preview is compared with, the call that an approval is about, what a run cost, conversations that
-- their user's list leaves out, calls that a run left to its client, what a client says was said before. Whatever is added has a
-- default, so that the version before this one goes on writing its rows.
ALTER TABLE previews ADD COLUMN current TEXT;                           -- JSON: what the change is made to, as it was then
ALTER TABLE approvals ADD COLUMN call_id TEXT COLLATE "C";                          -- the call in the run that asked
ALTER TABLE runs ADD COLUMN nano_usd BIGINT;                           -- what it cost; NULL where its models have no price
ALTER TABLE conversations ADD COLUMN unlisted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_details ADD COLUMN client_calls TEXT;                   -- JSON: the calls that it left to its client
ALTER TABLE run_details ADD COLUMN earlier TEXT;                        -- JSON: what its client told of before the conversation began

-- Of a user whose clients keep lists of their own, few are listed.
CREATE INDEX conversations_listed ON conversations (tenant, user_id, updated_at, id) WHERE unlisted = 0;
-- Those that no list shows are deleted when they are old.
CREATE INDEX conversations_unlisted ON conversations (updated_at) WHERE unlisted = 1;
