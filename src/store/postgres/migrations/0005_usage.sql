-- What users have used, by day and model; how many runs live. Whatever is added has a default, so that the version before this one
-- goes on writing its rows.
ALTER TABLE runs ADD COLUMN charged BIGINT NOT NULL DEFAULT 0;  -- how many of its model calls are in usage_daily

CREATE TABLE usage_daily (
    tenant              TEXT COLLATE "C" NOT NULL,
    user_id             TEXT COLLATE "C" NOT NULL,
    day                 BIGINT NOT NULL,  -- since 1970-01-01, UTC
    model               TEXT COLLATE "C" NOT NULL,  -- provider:model
    runs                BIGINT NOT NULL,  -- those whose first turn it answered
    turns               BIGINT NOT NULL,
    input_tokens        BIGINT NOT NULL,
    output_tokens       BIGINT NOT NULL,
    cached_input_tokens BIGINT NOT NULL,
    nano_usd            BIGINT NOT NULL,  -- of those that have a price
    PRIMARY KEY (tenant, user_id, day, model)
);

CREATE INDEX usage_of_tenant ON usage_daily (tenant, day);
CREATE INDEX usage_by_age ON usage_daily (day);
-- The runs that live, by whose they are.
CREATE INDEX runs_live_of ON runs (tenant, user_id) WHERE state IN ('queued', 'running');
