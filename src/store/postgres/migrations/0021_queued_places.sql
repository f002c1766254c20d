-- What the request of a run that waits changes of its conversation's place, as JSON: that is done when its turn comes. A run that
-- began at once has none.
ALTER TABLE runs ADD COLUMN arrives TEXT;
