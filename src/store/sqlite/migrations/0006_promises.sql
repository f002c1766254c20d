-- What keeps promises. Whatever is added has a default, so that the version before this one goes on writing its rows.

-- fate: what became of a call is data. Until here it was read from how a result begins; these are the last statements that do so. A
-- result is JSON text as this program wrote it, without blanks; since a quotation mark inside a text has a backslash before it, what
-- is looked for stands only where a result's text begins. A backend's words never began so: the program put a blank before them.
UPDATE messages SET fates = NULL  -- those in the body count then
WHERE kind = 'tool_results' AND instr(body, ',"content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was') > 0;

UPDATE messages SET body = replace(replace(replace(replace(replace(replace(body,
    ',"content":"{\"status\":\"awaiting_approval\"',
    ',"fate":"awaits_approval","content":"{\"status\":\"awaiting_approval\"'),
    ',"content":"{\"status\":\"awaiting_client\"',
    ',"fate":"awaits_client","content":"{\"status\":\"awaiting_client\"'),
    ',"content":"{\"error\":\"this call was not made',
    ',"fate":"not_run","content":"{\"error\":\"this call was not made'),
    ',"content":"{\"error\":\"this call was not completed because the run ended\"}"',
    ',"fate":"not_run","content":"{\"error\":\"this call was not completed because the run ended\"}"'),
    ',"content":"{\"error\":\"the state of this call is unknown: it was sent, and the run ended before its answer came.',
    ',"fate":"unknown","content":"{\"error\":\"the state of this call is unknown: it was sent, and the run ended before its answer came.'),
    ',"content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was',
    ',"fate":"unknown","content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was')
WHERE kind = 'tool_results' AND (instr(body, ',"content":"{\"status\":\"awaiting_approval\"') > 0
       OR instr(body, ',"content":"{\"status\":\"awaiting_client\"') > 0
       OR instr(body, ',"content":"{\"error\":\"this call was not ') > 0
       OR instr(body, ',"content":"{\"error\":\"the state of this call is unknown: it was sent, and the run ended before its answer came.') > 0
       OR instr(body, ',"content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was') > 0);

UPDATE runs SET calling = replace(replace(replace(replace(replace(replace(calling,
    ',"content":"{\"status\":\"awaiting_approval\"',
    ',"fate":"awaits_approval","content":"{\"status\":\"awaiting_approval\"'),
    ',"content":"{\"status\":\"awaiting_client\"',
    ',"fate":"awaits_client","content":"{\"status\":\"awaiting_client\"'),
    ',"content":"{\"error\":\"this call was not made',
    ',"fate":"not_run","content":"{\"error\":\"this call was not made'),
    ',"content":"{\"error\":\"this call was not completed because the run ended\"}"',
    ',"fate":"not_run","content":"{\"error\":\"this call was not completed because the run ended\"}"'),
    ',"content":"{\"error\":\"the state of this call is unknown: it was sent, and the run ended before its answer came.',
    ',"fate":"unknown","content":"{\"error\":\"the state of this call is unknown: it was sent, and the run ended before its answer came.'),
    ',"content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was',
    ',"fate":"unknown","content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was')
WHERE calling IS NOT NULL;

-- The trail has a fate of its own, at its end.
UPDATE trail SET body = substr(body, 1, length(rtrim(rtrim(body, '}'), '0123456789')) - 30)
    || '"fate":"unknown","duration_ms":' || substr(body, length(rtrim(rtrim(body, '}'), '0123456789')) + 1)
WHERE kind = 'tool_call' AND instr(body, '"result":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was') > 0 AND substr(rtrim(rtrim(body, '}'), '0123456789'), -30) = '"fate":"failed","duration_ms":';

-- author: who wrote a message in the user's place is data. Until here it was read from how the text begins; these are the last
-- statements that do so. Within a run only the loop itself speaks there.
ALTER TABLE messages ADD COLUMN author TEXT;  -- NULL: the user; it stands in the body too

UPDATE messages SET author = CASE
    WHEN seq > 0 AND substr(body, 1, 43) = '{"text":"[You have used all the tool calls ' THEN 'last_answer'
    WHEN substr(body, 1, 38) = '{"text":"[Decision on a waiting call: ' THEN 'decision'
    WHEN substr(body, 1, 48) = '{"text":"[Your previous answer was interrupted. ' THEN 'continuation'
    WHEN substr(body, 1, 40) = '{"text":"[Results from the application: ' THEN 'client_results'
    ELSE 'correction' END
WHERE kind = 'user' AND (seq > 0 OR
    (substr(body, 1, 48) = '{"text":"[Your previous answer was interrupted. '
        OR substr(body, 1, 38) = '{"text":"[Decision on a waiting call: '
        OR substr(body, 1, 40) = '{"text":"[Results from the application: ')
    AND EXISTS (SELECT 1 FROM runs r WHERE r.tenant = messages.tenant AND r.user_id = messages.user_id
        AND r.conversation = messages.conversation AND r.run_seq = messages.run_seq AND r.continues IS NOT NULL));

UPDATE messages SET body = '{"author":"' || author || '",' || substr(body, 2) WHERE author IS NOT NULL;

-- approvals: what is let through is a tool as it was when it was shown; nobody lets through their own call where that is asked.
ALTER TABLE approvals ADD COLUMN definition TEXT;                              -- of the tool; NULL: kept before this was noted, asked again
ALTER TABLE approvals ADD COLUMN not_requester INTEGER NOT NULL DEFAULT 0;     -- whether somebody else than its user has to let it through

-- approvals: the definition of each tool of a server that was seen first, or that the operator has accepted since.
CREATE TABLE tool_pins (
    server   TEXT    NOT NULL,
    tool     TEXT    NOT NULL,  -- the server's name for it
    digest   TEXT    NOT NULL,
    seen_at  INTEGER NOT NULL,  -- by the database's clock
    PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;

-- previews: a state for a save that is under way and one for what a newer preview has replaced, a token that grows with each claim,
-- what a preview was made against and by whom, and its end. A constraint is only changed with its table here.
CREATE TABLE previews_6 (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    change       TEXT    NOT NULL,  -- JSON
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'claimed', 'sending', 'accepted', 'rejected', 'superseded')),
    created_at   INTEGER NOT NULL,
    claimed_at   INTEGER,           -- by the database's own clock
    decided_at   INTEGER,           -- later than any before it in the conversation
    decision     TEXT,              -- JSON
    told_in_run  TEXT,              -- the run whose user message told the model
    current      TEXT,              -- JSON: what the change is made to, as it was then
    claim_token  INTEGER NOT NULL DEFAULT 0,
    sends        INTEGER NOT NULL DEFAULT 0,  -- saves whose answer is not known
    context_type TEXT,              -- of the profile that made it; NULL in rows of version 5
    tool         TEXT,              -- that made it; the same
    subject      TEXT,              -- a digest of what it is about; the same
    reader       TEXT,              -- what finds what it changes again; the same
    base_digest  TEXT,              -- of that, as it was then; NULL where there was nothing, or it could not be read
    expires_at   INTEGER            -- by the database's own clock; NULL in rows of version 5: a day after they were made
) STRICT;
INSERT INTO previews_6 (id, tenant, user_id, conversation, change, state, created_at, claimed_at, decided_at, decision, told_in_run, current)
    SELECT id, tenant, user_id, conversation, change, state, created_at, claimed_at, decided_at, decision, told_in_run, current
    FROM previews;
DROP TABLE previews;
ALTER TABLE previews_6 RENAME TO previews;
-- What waits at the change has its day from now on.
UPDATE previews SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000 WHERE state IN ('pending', 'claimed');
CREATE INDEX previews_decided ON previews (tenant, user_id, conversation, state, decided_at, id);
CREATE INDEX previews_by_end ON previews (COALESCE(expires_at, created_at + 86400000))
    WHERE state IN ('pending', 'claimed', 'sending', 'superseded');

-- audit: who has written, decided and looked, apart from what it tells of, and never changed. A line is written with the fact that it tells,
-- without a number; whoever seals chains lines that are committed, in order, each once. What is chained stays as it is.
CREATE TABLE audit (
    entry        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,  -- so that a fact whose commit is repeated is told once
    chain        TEXT    NOT NULL,         -- 'tenant:' and the tenant, or 'tokens'
    seq          INTEGER,                  -- 1, 2, 3 … in its chain; NULL: not yet chained
    at           INTEGER NOT NULL,         -- by the database's own clock
    act          TEXT    NOT NULL,
    actor        TEXT    NOT NULL,
    on_behalf_of TEXT    NOT NULL,
    conversation TEXT,
    run          TEXT,
    call         TEXT,
    tool         TEXT,
    subject      TEXT,
    arguments    TEXT,                     -- a digest
    outcome      TEXT,
    reason       TEXT,
    times        INTEGER NOT NULL,         -- how many of them the line tells of
    previous     TEXT,
    digest       TEXT
) STRICT;

CREATE UNIQUE INDEX audit_in_order ON audit (chain, seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_waiting ON audit (chain, entry) WHERE seq IS NULL;

CREATE TABLE audit_chains (
    chain  TEXT    NOT NULL PRIMARY KEY,
    seq    INTEGER NOT NULL,  -- of its last line
    digest TEXT    NOT NULL,
    sent   INTEGER NOT NULL DEFAULT 0  -- up to here a collector has it
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_stays BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit record is append-only');
END;

CREATE TRIGGER audit_is_not_rewritten
BEFORE UPDATE OF entry, id, chain, at, act, actor, on_behalf_of, conversation, run, call, tool, subject, arguments, outcome, reason,
    times
ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit record is append-only');
END;

CREATE TRIGGER audit_is_chained_once BEFORE UPDATE OF seq, previous, digest ON audit WHEN OLD.seq IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'the audit record is append-only');
END;

-- quotas: how much is kept for each user. Counted by the database itself with each row that comes and goes, so that no program
-- has to, that of the version before this one least of all.
CREATE TABLE stored_usage (
    tenant        TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    bytes         INTEGER NOT NULL DEFAULT 0,  -- of messages, payloads, and what is long of runs
    conversations INTEGER NOT NULL DEFAULT 0,  -- that lists show
    export_day    INTEGER NOT NULL DEFAULT 0,  -- the day of the newest export, since 1970-01-01, UTC, by the database's own clock
    exports       INTEGER NOT NULL DEFAULT 0,  -- on that day
    PRIMARY KEY (tenant, user_id)
) STRICT, WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN detail_bytes INTEGER NOT NULL DEFAULT 0;  -- of its row in run_details

UPDATE runs SET detail_bytes = (
        SELECT COALESCE(octet_length(d.context), 0) + COALESCE(octet_length(d.answer), 0) + COALESCE(octet_length(d.diagnostics), 0)
            + COALESCE(octet_length(d.earlier), 0) + COALESCE(octet_length(d.client_calls), 0)
        FROM run_details d WHERE d.run_id = runs.id)
    WHERE id IN (SELECT run_id FROM run_details);

INSERT INTO stored_usage (tenant, user_id, bytes, conversations)
    SELECT tenant, user_id, SUM(bytes), SUM(conversations) FROM (
        SELECT tenant, user_id, octet_length(body) AS bytes, 0 AS conversations FROM messages UNION ALL
        SELECT tenant, user_id, octet_length(data) + octet_length(summary), 0 FROM payloads UNION ALL
        SELECT tenant, user_id, detail_bytes, 0 FROM runs UNION ALL
        SELECT tenant, user_id, 0, 1 - unlisted FROM conversations)
    GROUP BY tenant, user_id;

CREATE TRIGGER messages_kept AFTER INSERT ON messages BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.body))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER messages_gone AFTER DELETE ON messages BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.body) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;
CREATE TRIGGER payloads_kept AFTER INSERT ON payloads BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, octet_length(NEW.data) + octet_length(NEW.summary))
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER payloads_gone AFTER DELETE ON payloads BEGIN
    UPDATE stored_usage SET bytes = bytes - octet_length(OLD.data) - octet_length(OLD.summary) WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;
CREATE TRIGGER run_details_kept AFTER INSERT ON run_details BEGIN
    UPDATE runs SET detail_bytes = COALESCE(octet_length(NEW.context), 0) + COALESCE(octet_length(NEW.answer), 0)
        + COALESCE(octet_length(NEW.diagnostics), 0) + COALESCE(octet_length(NEW.earlier), 0) + COALESCE(octet_length(NEW.client_calls), 0)
    WHERE id = NEW.run_id;
END;
CREATE TRIGGER run_details_changed AFTER UPDATE ON run_details BEGIN
    UPDATE runs SET detail_bytes = COALESCE(octet_length(NEW.context), 0) + COALESCE(octet_length(NEW.answer), 0)
        + COALESCE(octet_length(NEW.diagnostics), 0) + COALESCE(octet_length(NEW.earlier), 0) + COALESCE(octet_length(NEW.client_calls), 0)
    WHERE id = NEW.run_id;
END;
CREATE TRIGGER runs_grown AFTER UPDATE OF detail_bytes ON runs WHEN NEW.detail_bytes <> OLD.detail_bytes BEGIN
    INSERT INTO stored_usage (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, NEW.detail_bytes - OLD.detail_bytes)
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER runs_gone AFTER DELETE ON runs WHEN OLD.detail_bytes <> 0 BEGIN
    UPDATE stored_usage SET bytes = bytes - OLD.detail_bytes WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;
CREATE TRIGGER conversations_kept AFTER INSERT ON conversations WHEN NEW.unlisted = 0 BEGIN
    INSERT INTO stored_usage (tenant, user_id, conversations) VALUES (NEW.tenant, NEW.user_id, 1)
    ON CONFLICT (tenant, user_id) DO UPDATE SET conversations = conversations + excluded.conversations;
END;
CREATE TRIGGER conversations_gone AFTER DELETE ON conversations WHEN OLD.unlisted = 0 BEGIN
    UPDATE stored_usage SET conversations = conversations - 1 WHERE tenant = OLD.tenant AND user_id = OLD.user_id;
END;

-- chats: what front ends call a chat's user by, where that is not their name in tokens; administrators look for it.
ALTER TABLE chats ADD COLUMN user_claim TEXT;
CREATE INDEX chats_of_claim ON chats (tenant, user_claim, number) WHERE user_claim IS NOT NULL;

-- chains: the runs that one message began, each going on with what a client or a person said to the one before.
ALTER TABLE runs ADD COLUMN chain_seq INTEGER;                    -- the run_seq of the run that has the message; NULL: this one
ALTER TABLE runs ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;     -- how often a model was asked in it, as far as it was told
ALTER TABLE runs ADD COLUMN called INTEGER NOT NULL DEFAULT 0;    -- how many calls of tools models have made in it
