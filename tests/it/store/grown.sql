-- Lets the planner believe, until the transaction is undone, that each table has a million rows, all of one tenant, and nothing
-- else of them. Each has to have a row for that, and so a page.
SET LOCAL session_replication_role = replica;
SET LOCAL plan_cache_mode = force_generic_plan;
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT conrelid::regclass AS of, conname FROM pg_constraint
        WHERE contype = 'c' AND connamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.of, one.conname);
    END LOOP;
    FOR one IN SELECT c.oid::regclass AS of, string_agg(quote_ident(attname), ', ') AS names, bool_or(attname = 'tenant') AS is_owned,
            string_agg(format('%s::%s', CASE atttypid WHEN 'bigint'::regtype THEN '-1' ELSE '''''' END, atttypid::regtype), ', ') AS row
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> '_sqlx_migrations' AND attnum > 0
            AND NOT attisdropped AND attnotnull AND NOT atthasdef AND attidentity = ''
        GROUP BY c.oid
    LOOP
        EXECUTE format('INSERT INTO %s (%s) VALUES (%s) ON CONFLICT DO NOTHING', one.of, one.names, one.row);
        IF one.is_owned THEN
            EXECUTE format('ALTER TABLE %s ALTER tenant SET (n_distinct = 1)', one.of);
            EXECUTE format('ANALYZE %s (tenant)', one.of);
        END IF;
    END LOOP;
END $$;
UPDATE pg_class SET reltuples = 1000000, relpages = pg_relation_size(oid) / 8192
WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace;
