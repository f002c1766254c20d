-- The history of a directive: the signals that it caused, in their order.
CREATE INDEX signals_caused ON signals (tenant, causation, seq) WHERE causation IS NOT NULL;
