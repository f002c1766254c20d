-- The rows of a store that has grown, in words that both databases take. In braces stands what the bench fills in: how many
-- conversations of 1,000 messages there are, of up to 100, and of all; the time now.
--
-- A thousand users of twenty tenants, and `heavy`, who has every thirtieth of the short conversations. Conversations begin one
-- after the other on 80 days, and their runs are kept in the order of time, so that the rows of one lie apart.

CREATE TEMPORARY TABLE grown AS
WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < {conversations}),
    sizes AS (SELECT n, CASE WHEN n <= {long} THEN 500 WHEN n <= {middle} THEN 50 ELSE 5 END AS runs FROM numbers),
    owners AS (SELECT n, runs, CASE WHEN runs = 5 AND n % 30 = 0 THEN 1 ELSE 0 END AS is_heavy FROM sizes)
SELECT n, runs, 'c' || n AS id,
    CASE is_heavy WHEN 1 THEN 't0' ELSE 't' || (n % 20) END AS tenant,
    CASE is_heavy WHEN 1 THEN 'heavy' ELSE 'u' || (n % 1000) END AS user_id,
    -- Short ones are as old as long ones.
    {now} - 86400000 - 6825600000 * ((n * 7919) % {conversations}) / {conversations} AS began
FROM owners;

INSERT INTO conversations (tenant, user_id, id, profile, context_type, created_at, updated_at)
SELECT tenant, user_id, id, 'bench', 'bench', began, began + (runs - 1) * 60000 FROM grown ORDER BY began;

INSERT INTO chats (tenant, user_id, conversation, app, created_at) SELECT tenant, user_id, id, 'bench', began FROM grown ORDER BY began;

CREATE TEMPORARY TABLE grown_runs AS
WITH RECURSIVE numbers (r) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT r + 1 FROM numbers WHERE r < 499)
SELECT '00000000-0000-7000-8000-' || (100000000000 + n * 500 + r) AS id, n, r, tenant, user_id, g.id AS conversation,
    began + r * 60000 AS at
FROM grown g JOIN numbers ON r < runs ORDER BY began + r * 60000;

INSERT INTO runs (id, tenant, user_id, conversation, run_seq, started_at, finished_at, outcome, state, context_type, replica,
    input_tokens, output_tokens, turns, seen_before, seen_own, parent_run_seq, nano_usd, charged, last_event_id)
SELECT id, tenant, user_id, conversation, r, at, at + 9000, 'completed', 'completed', 'bench', 'replica', 900, 120, 1, 2 * r, 2,
    CASE WHEN r > 0 THEN r - 1 END, 1500000, 1, 12
FROM grown_runs;

INSERT INTO messages (tenant, user_id, conversation, run_seq, seq, kind, body, created_at)
SELECT tenant, user_id, conversation, r, s.seq, CASE s.seq WHEN 0 THEN 'user' ELSE 'assistant' END,
    CASE s.seq WHEN 0 THEN '{"text":"Question ' || r || ' of ' || conversation || ': which of the items that were ordered in week '
        || (n % 53) || ' have not come to the warehouse yet, and who of the suppliers is to be written to?"}'
    ELSE '{"provider":"openai","model":"bench","parts":[{"text":{"text":"Of the ' || (n % 97) || ' items that were ordered in week '
        || (n % 53) || ', ' || (r % 13) || ' have not come yet. The supplier ' || (n % 211) || ' has told us that those of this order are on '
        || 'their way and come by Friday; the others were asked again today. Should I note a reminder for order ' || (n * 7 + r)
        || ', and tell the people in the warehouse which places are to be kept free for what comes, as it was done the last time?"}}]}'
    END, at + s.seq * 9000
FROM grown_runs CROSS JOIN (SELECT 0 AS seq UNION ALL SELECT 1) AS s;

INSERT INTO trail (tenant, user_id, conversation, run_id, seq, at, kind, body)
SELECT tenant, user_id, conversation, id, s.seq, at + s.seq * 9000, CASE s.seq WHEN 0 THEN 'user_message' ELSE 'model_turn' END,
    CASE s.seq WHEN 0 THEN '{"text":"Question ' || r || ' of ' || conversation || ': which of the items have not come yet?","decisions":[]}'
    ELSE '{"turn":0,"provider":"openai","model":"bench","request_id":null,"text":"Of the ' || (n % 97) || ' items that were ordered in week '
        || (n % 53) || ', some have not come yet. The supplier has told us that those are on their way.","thinking":"","calls":[],'
        || '"finish":"stop","usage":{"input_tokens":900,"output_tokens":120},"duration_ms":9000}'
    END
FROM grown_runs CROSS JOIN (SELECT 0 AS seq UNION ALL SELECT 1) AS s;

-- One run in a hundred has asked for an approval, of which one in twenty still waits, half of them for a role.
INSERT INTO approvals (id, tenant, user_id, conversation, run_id, tool, arguments, input, digest, role, state, created_at, expires_at,
    decided_at, decided_in)
SELECT '00000000-0000-7000-9000-' || (100000000000 + n * 500 + r), tenant, user_id, conversation, id, 'list_items', '{}', '{}',
    'digest', CASE WHEN r % 2 = 0 THEN 'clerk' END, CASE WHEN n % 20 = 0 THEN 'pending' ELSE 'approved' END, at,
    {now} + 86400000, CASE WHEN n % 20 <> 0 THEN at + 60000 END, CASE WHEN n % 20 <> 0 THEN id END
FROM grown_runs WHERE (n + r) % 100 = 0;

INSERT INTO payloads (tenant, user_id, conversation, id, run_id, seq, kind, summary, data, source, created_at)
SELECT tenant, user_id, conversation, CAST(10000000 + r AS TEXT), id, r, 'table', '"Items"', '{"columns":["id","name"],"rows":[["1","one"],["2","two"]]}',
    'tool', at
FROM grown_runs WHERE (n + r) % 20 = 0;

INSERT INTO feedback (run_id, tenant, user_id, conversation, score, body, given_at)
SELECT id, tenant, user_id, conversation, 1, '{"comment":null,"tags":[]}', at FROM grown_runs WHERE (n + r) % 50 = 0;

INSERT INTO usage_daily (tenant, user_id, day, model, runs, turns, input_tokens, output_tokens, cached_input_tokens, nano_usd)
SELECT tenant, user_id, at / 86400000, 'openai:bench', COUNT(*), COUNT(*), 900 * COUNT(*), 120 * COUNT(*), 0, 1500000 * COUNT(*)
FROM grown_runs GROUP BY 1, 2, 3;

DELETE FROM stored_usage;
INSERT INTO stored_usage (tenant, user_id, bytes, conversations)
SELECT tenant, user_id, SUM(1200 * runs), COUNT(*) FROM grown GROUP BY 1, 2;

DROP TABLE grown_runs;
DROP TABLE grown;
