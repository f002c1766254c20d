-- What the request of a run that waits changes of its conversation's place, as JSON: that is done when its turn comes. A run that
-- began at once has none.
ALTER TABLE runs ADD COLUMN arrives TEXT;

-- The number of the run that has left recap and clarification, which are of its branch alone; none of those before.
ALTER TABLE conversation_state ADD COLUMN left_by BIGINT;
