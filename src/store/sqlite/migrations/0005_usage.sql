-- What users have used, by day and model; how many runs live. Whatever is added has a default, so that the version before this one
-- goes on writing its rows.
ALTER TABLE runs ADD COLUMN charged INTEGER NOT NULL DEFAULT 0;  -- how many of its model calls are in usage_daily

CREATE TABLE usage_daily (
    tenant              TEXT    NOT NULL,
    user_id             TEXT    NOT NULL,
    day                 INTEGER NOT NULL,  -- since 1970-01-01, UTC
    model               TEXT    NOT NULL,  -- provider:model
    runs                INTEGER NOT NULL,  -- those whose first turn it answered
    turns               INTEGER NOT NULL,
    input_tokens        INTEGER NOT NULL,
    output_tokens       INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    nano_usd            INTEGER NOT NULL,  -- of those that have a price
    PRIMARY KEY (tenant, user_id, day, model)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_of_tenant ON usage_daily (tenant, day);
CREATE INDEX usage_by_age ON usage_daily (day);
-- The runs that live, by whose they are.
CREATE INDEX runs_live_of ON runs (tenant, user_id) WHERE state IN ('queued', 'running');
