-- Decisions on calls of one turn go on in one run, and messages are known by the ids that clients gave them.
ALTER TABLE runs ADD COLUMN gathers INTEGER NOT NULL DEFAULT 0;  -- whether it takes decisions on further calls of the run that it continues
ALTER TABLE runs ADD COLUMN asked_as TEXT;                       -- the client's own id of its question
ALTER TABLE approvals ADD COLUMN joined INTEGER;                 -- decided for a run that had begun: the number of its message about that; 0: not read yet
