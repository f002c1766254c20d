-- Plans that wait for a person in the middle.
ALTER TABLE plans DROP CONSTRAINT plans_status_check, ADD CONSTRAINT plans_status_check CHECK (status IN
    ('draft', 'held', 'executing', 'paused', 'completed', 'completed_with_errors', 'failed', 'cancelled'));
ALTER TABLE plan_steps DROP CONSTRAINT plan_steps_status_check, ADD CONSTRAINT plan_steps_status_check CHECK (status IN
    ('pending', 'executing', 'awaiting_approval', 'completed', 'failed', 'skipped', 'cancelled'));
ALTER TABLE executions DROP CONSTRAINT executions_status_check, ADD CONSTRAINT executions_status_check CHECK (status IN
    ('executing', 'awaiting_approval', 'completed', 'failed', 'cancelled'));
-- The kind of screen whose assistant makes it.
ALTER TABLE plans ADD COLUMN context_type TEXT COLLATE "C";

-- Calls that wait may be those of a plan's step, or of its sub-agent.
ALTER TABLE approvals ADD COLUMN plan_id TEXT COLLATE "C";
ALTER TABLE approvals ADD COLUMN step BIGINT;
ALTER TABLE approvals ADD COLUMN agent_id TEXT COLLATE "C";
CREATE INDEX approvals_of_plan ON approvals (plan_id) WHERE plan_id IS NOT NULL;
