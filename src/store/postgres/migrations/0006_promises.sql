-- What keeps promises. Whatever is added has a default, so that the version before this one goes on writing its rows.

-- fate: what became of a call is data. Until here it was read from how a result begins; these are the last statements that do so. A
-- result is JSON text as this program wrote it, without blanks; since a quotation mark inside a text has a backslash before it, what
-- is looked for stands only where a result's text begins. A backend's words never began so: the program put a blank before them.
UPDATE messages SET fates = NULL  -- those in the body count then
WHERE kind = 'tool_results' AND strpos(body, ',"content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was') > 0;

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
WHERE kind = 'tool_results' AND (strpos(body, ',"content":"{\"status\":\"awaiting_approval\"') > 0
       OR strpos(body, ',"content":"{\"status\":\"awaiting_client\"') > 0
       OR strpos(body, ',"content":"{\"error\":\"this call was not ') > 0
       OR strpos(body, ',"content":"{\"error\":\"the state of this call is unknown: it was sent, and the run ended before its answer came.') > 0
       OR strpos(body, ',"content":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was') > 0);

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
WHERE kind = 'tool_call' AND strpos(body, '"result":"{\"error\":\"it is not known whether this was done; do not repeat the call: look whether it was') > 0 AND right(rtrim(rtrim(body, '}'), '0123456789'), 30) = '"fate":"failed","duration_ms":';

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
ALTER TABLE approvals ADD COLUMN definition TEXT COLLATE "C";                  -- of the tool; NULL: kept before this was noted, asked again
ALTER TABLE approvals ADD COLUMN not_requester BIGINT NOT NULL DEFAULT 0;      -- whether somebody else than its user has to let it through

-- approvals: the definition of each tool of a server that was seen first, or that the operator has accepted since.
CREATE TABLE tool_pins (
    server   TEXT COLLATE "C" NOT NULL,
    tool     TEXT COLLATE "C" NOT NULL,  -- the server's name for it
    digest   TEXT COLLATE "C" NOT NULL,
    seen_at  BIGINT NOT NULL,  -- by the database's clock
    PRIMARY KEY (server, tool)
);

-- previews: a state for a save that is under way and one for what a newer preview has replaced, a token that grows with each claim,
-- what a preview was made against and by whom, and its end.
ALTER TABLE previews DROP CONSTRAINT previews_state_check;
ALTER TABLE previews ADD CONSTRAINT previews_state_check
    CHECK (state IN ('pending', 'claimed', 'sending', 'accepted', 'rejected', 'superseded'));
ALTER TABLE previews ADD COLUMN claim_token BIGINT NOT NULL DEFAULT 0;
ALTER TABLE previews ADD COLUMN sends BIGINT NOT NULL DEFAULT 0;  -- saves whose answer is not known
ALTER TABLE previews ADD COLUMN context_type TEXT COLLATE "C";                -- of the profile that made it; NULL in rows of version 5
ALTER TABLE previews ADD COLUMN tool TEXT COLLATE "C";                        -- that made it; the same
ALTER TABLE previews ADD COLUMN subject TEXT COLLATE "C";                     -- a digest of what it is about; the same
ALTER TABLE previews ADD COLUMN reader TEXT COLLATE "C";                      -- what finds what it changes again; the same
ALTER TABLE previews ADD COLUMN base_digest TEXT COLLATE "C";                 -- of that, as it was then; NULL where there was nothing, or it could not be read
ALTER TABLE previews ADD COLUMN expires_at BIGINT;                -- by the database's own clock; NULL in rows of version 5: a day after they were made
-- What waits at the change has its day from now on.
UPDATE previews SET expires_at = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + 86400000
    WHERE state IN ('pending', 'claimed');
CREATE INDEX previews_by_end ON previews (COALESCE(expires_at, created_at + 86400000))
    WHERE state IN ('pending', 'claimed', 'sending', 'superseded');

-- audit: who has written, decided and looked, apart from what it tells of, and never changed. A line is written with the fact that it tells,
-- without a number; whoever seals chains lines that are committed, in order, each once. What is chained stays as it is.
CREATE TABLE audit (
    entry        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           TEXT COLLATE "C" NOT NULL UNIQUE,  -- so that a fact whose commit is repeated is told once
    chain        TEXT COLLATE "C" NOT NULL,         -- 'tenant:' and the tenant, or 'tokens'
    seq          BIGINT,                  -- 1, 2, 3 … in its chain; NULL: not yet chained
    at           BIGINT NOT NULL,         -- by the database's own clock
    act          TEXT   NOT NULL,
    actor        TEXT   NOT NULL,
    on_behalf_of TEXT   NOT NULL,
    conversation TEXT,
    run          TEXT,
    call         TEXT,
    tool         TEXT,
    subject      TEXT,
    arguments    TEXT,                    -- a digest
    outcome      TEXT,
    reason       TEXT,
    times        BIGINT  NOT NULL,         -- how many of them the line tells of
    previous     TEXT,
    digest       TEXT
);

CREATE UNIQUE INDEX audit_in_order ON audit (chain, seq) WHERE seq IS NOT NULL;
CREATE INDEX audit_waiting ON audit (chain, entry) WHERE seq IS NULL;

CREATE TABLE audit_chains (
    chain  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq    BIGINT NOT NULL,  -- of its last line
    digest TEXT   NOT NULL,
    sent   BIGINT NOT NULL DEFAULT 0  -- up to here a collector has it
);

CREATE FUNCTION audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit record is append-only';
END
$$;

CREATE TRIGGER audit_stays BEFORE DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses();

CREATE TRIGGER audit_is_not_rewritten
BEFORE UPDATE OF entry, id, chain, at, act, actor, on_behalf_of, conversation, run, call, tool, subject, arguments, outcome, reason,
    times
ON audit FOR EACH ROW EXECUTE FUNCTION audit_refuses();

CREATE TRIGGER audit_is_chained_once BEFORE UPDATE OF seq, previous, digest ON audit
FOR EACH ROW WHEN (OLD.seq IS NOT NULL) EXECUTE FUNCTION audit_refuses();

-- quotas: how much is kept for each user. Counted by the database itself with each statement, so that no program has to, that of
-- the version before this one least of all.
CREATE TABLE stored_usage (
    tenant        TEXT COLLATE "C" NOT NULL,
    user_id       TEXT COLLATE "C" NOT NULL,
    bytes         BIGINT NOT NULL DEFAULT 0,  -- of messages, payloads, and what is long of runs
    conversations BIGINT NOT NULL DEFAULT 0,  -- that lists show
    export_day    BIGINT NOT NULL DEFAULT 0,  -- the day of the newest export, since 1970-01-01, UTC, by the database's own clock
    exports       BIGINT NOT NULL DEFAULT 0,  -- on that day
    PRIMARY KEY (tenant, user_id)
);

ALTER TABLE runs ADD COLUMN detail_bytes BIGINT NOT NULL DEFAULT 0;  -- of its row in run_details

UPDATE runs SET detail_bytes = COALESCE(octet_length(d.context), 0) + COALESCE(octet_length(d.answer), 0)
        + COALESCE(octet_length(d.diagnostics), 0) + COALESCE(octet_length(d.earlier), 0) + COALESCE(octet_length(d.client_calls), 0)
    FROM run_details d WHERE d.run_id = runs.id;

INSERT INTO stored_usage (tenant, user_id, bytes, conversations)
    SELECT tenant, user_id, SUM(bytes), SUM(conversations) FROM (
        SELECT tenant, user_id, octet_length(body) AS bytes, 0 AS conversations FROM messages UNION ALL
        SELECT tenant, user_id, octet_length(data) + octet_length(summary), 0 FROM payloads UNION ALL
        SELECT tenant, user_id, detail_bytes, 0 FROM runs UNION ALL
        SELECT tenant, user_id, 0, 1 - unlisted FROM conversations) AS kept
    GROUP BY tenant, user_id;

-- In the order of users, so that nobody who waits for one of them has another that the first one waits for.
CREATE FUNCTION stored_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign BIGINT := CASE TG_OP WHEN 'DELETE' THEN -1 ELSE 1 END;
BEGIN
    IF TG_TABLE_NAME = 'payloads' THEN
        INSERT INTO stored_usage AS s (tenant, user_id, bytes)
            SELECT tenant, user_id, sign * SUM(octet_length(data) + octet_length(summary)) FROM changed GROUP BY 1, 2 ORDER BY 1, 2
            ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    ELSIF TG_TABLE_NAME = 'runs' THEN
        INSERT INTO stored_usage AS s (tenant, user_id, bytes)
            SELECT tenant, user_id, sign * SUM(detail_bytes) FROM changed WHERE detail_bytes <> 0 GROUP BY 1, 2 ORDER BY 1, 2
            ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    ELSIF TG_TABLE_NAME = 'conversations' THEN
        INSERT INTO stored_usage AS s (tenant, user_id, conversations)
            SELECT tenant, user_id, sign * COUNT(*) FROM changed WHERE unlisted = 0 GROUP BY 1, 2 ORDER BY 1, 2
            ON CONFLICT (tenant, user_id) DO UPDATE SET conversations = s.conversations + excluded.conversations;
    ELSE
        INSERT INTO stored_usage AS s (tenant, user_id, bytes)
            SELECT tenant, user_id, sign * SUM(octet_length(body)) FROM changed GROUP BY 1, 2 ORDER BY 1, 2
            ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION run_details_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs SET detail_bytes = COALESCE(octet_length(NEW.context), 0) + COALESCE(octet_length(NEW.answer), 0)
        + COALESCE(octet_length(NEW.diagnostics), 0) + COALESCE(octet_length(NEW.earlier), 0) + COALESCE(octet_length(NEW.client_calls), 0)
    WHERE id = NEW.run_id;
    RETURN NULL;
END
$$;

CREATE FUNCTION runs_grown() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stored_usage AS s (tenant, user_id, bytes) VALUES (NEW.tenant, NEW.user_id, NEW.detail_bytes - OLD.detail_bytes)
    ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = s.bytes + excluded.bytes;
    RETURN NULL;
END
$$;

CREATE TRIGGER messages_kept AFTER INSERT ON messages REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER messages_gone AFTER DELETE ON messages REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER payloads_kept AFTER INSERT ON payloads REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER payloads_gone AFTER DELETE ON payloads REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER conversations_kept AFTER INSERT ON conversations REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER conversations_gone AFTER DELETE ON conversations REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER runs_gone AFTER DELETE ON runs REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION stored_changed();
CREATE TRIGGER run_details_kept AFTER INSERT OR UPDATE ON run_details FOR EACH ROW EXECUTE FUNCTION run_details_changed();
CREATE TRIGGER runs_grown AFTER UPDATE OF detail_bytes ON runs FOR EACH ROW WHEN (NEW.detail_bytes <> OLD.detail_bytes) EXECUTE FUNCTION runs_grown();

-- row-level security: off until somebody says `SELECT switchboard_row_security(TRUE)`. Then a transaction sees and changes the
-- rows of the tenant and the user that it has named, by `set_config('app.tenant', …, true)` and `app.user`: a name behind `=`,
-- or `*` for all. One that has named none sees nothing, also where its role owns the tables. Of tables with the columns
-- `tenant` and `user_id`, with `tenant` alone, of chains of the audit record, and with a `run_id` alone, which belong to their
-- run's owner.

CREATE FUNCTION switchboard_row_security(wanted BOOLEAN) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    owned RECORD;
    test  TEXT;
    tables INTEGER := 0;
BEGIN
    FOR owned IN
        SELECT c.oid, c.oid::regclass AS name,
            EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant') AS of_tenant,
            EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'user_id') AS of_user,
            EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'run_id') AS of_run,
            EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'chain') AS of_chain
        FROM pg_class c
        WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'runs'::regclass)
        ORDER BY c.relname
    LOOP
        test := CASE
            WHEN owned.of_tenant AND owned.of_user THEN
                '(SELECT current_setting(''app.tenant'', TRUE)) IN (''*'', ''='' || tenant)
                 AND (SELECT current_setting(''app.user'', TRUE)) IN (''*'', ''='' || user_id)'
            WHEN owned.of_tenant THEN '(SELECT current_setting(''app.tenant'', TRUE)) IN (''*'', ''='' || tenant)'
            WHEN owned.of_chain THEN
                '(SELECT current_setting(''app.tenant'', TRUE))
                 IN (''*'', CASE WHEN chain LIKE ''tenant:%'' THEN ''='' || substr(chain, 8) END)'
            WHEN owned.of_run THEN 'EXISTS (SELECT 1 FROM runs r WHERE r.id = run_id)'
        END;
        CONTINUE WHEN test IS NULL;
        EXECUTE format('DROP POLICY IF EXISTS owners_rows ON %s', owned.name);
        IF wanted THEN
            EXECUTE format('CREATE POLICY owners_rows ON %s USING (%s)', owned.name, test);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', owned.name);
            EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', owned.name);
        ELSE
            EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', owned.name);
            EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', owned.name);
        END IF;
        tables := tables + 1;
    END LOOP;
    RETURN tables;
END $$;

-- chats: what front ends call a chat's user by, where that is not their name in tokens; administrators look for it.
ALTER TABLE chats ADD COLUMN user_claim TEXT COLLATE "C";
CREATE INDEX chats_of_claim ON chats (tenant, user_claim, number) WHERE user_claim IS NOT NULL;

-- chains: the runs that one message began, each going on with what a client or a person said to the one before.
ALTER TABLE runs ADD COLUMN chain_seq BIGINT;                    -- the run_seq of the run that has the message; NULL: this one
ALTER TABLE runs ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;     -- how often a model was asked in it, as far as it was told
ALTER TABLE runs ADD COLUMN called BIGINT NOT NULL DEFAULT 0;    -- how many calls of tools models have made in it
