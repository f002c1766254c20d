-- Words are compared in another way: letters with strokes, what is written as one character or as several, Arabic. A row that was
-- indexed before, or is by a replica of the version before, has a 1: the next search of its user indexes it anew.
CREATE INDEX runs_by_words ON runs (tenant, user_id, started_at) WHERE indexed < 2;
CREATE INDEX conversations_by_words ON conversations (tenant, user_id, id) WHERE title_indexed < 2 AND title IS NOT NULL;
DROP INDEX runs_unindexed;
DROP INDEX conversations_unindexed;
