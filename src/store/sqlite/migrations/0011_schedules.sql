-- The history of a directive: the signals that it caused, in their order.
CREATE INDEX signals_caused ON signals (tenant, causation, seq) WHERE causation IS NOT NULL;

-- Schedules: the newest time for which each has been requested.
CREATE TABLE schedules (
    name     TEXT NOT NULL PRIMARY KEY,
    fired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
