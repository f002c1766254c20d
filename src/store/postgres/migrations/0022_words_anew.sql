-- Words are compared in another way: letters with strokes, what is written as one character or as several, Arabic. What was said is
-- put into the index anew by the next search of each user. Nobody indexes meanwhile.
TRUNCATE search_texts;
UPDATE runs SET indexed = 0 WHERE indexed <> 0;
UPDATE conversations SET title_indexed = 0 WHERE title_indexed <> 0;
