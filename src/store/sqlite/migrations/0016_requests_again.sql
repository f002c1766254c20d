-- A request that is made again without a key is found by what it says.
CREATE INDEX runs_lately ON runs (tenant, user_id, request_digest, started_at) WHERE request_key IS NOT NULL;
