-- Words are compared in another way: letters with strokes, what is written as one character or as several, Arabic. What was said is
-- put into the index anew by the next search of each user.
DROP TRIGGER search_texts_gone;
DELETE FROM search_texts;
INSERT INTO search_index (search_index) VALUES ('delete-all');
CREATE TRIGGER search_texts_gone AFTER DELETE ON search_texts BEGIN
    INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', OLD.id, OLD.words);
END;

UPDATE runs SET indexed = 0 WHERE indexed <> 0;
UPDATE conversations SET title_indexed = 0 WHERE title_indexed <> 0;
