-- Artifacts of helpers: the call of the run's own that a step of a plan or a sub-agent has worked for, and who it was.
ALTER TABLE artifacts ADD COLUMN of_call TEXT;
ALTER TABLE artifacts ADD COLUMN plan_id TEXT;
ALTER TABLE artifacts ADD COLUMN step INTEGER;
ALTER TABLE artifacts ADD COLUMN agent_id TEXT;
