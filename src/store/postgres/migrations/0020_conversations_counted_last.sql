-- Whoever begins a run makes its conversation, and waits for the turn of its user or tenant behind that. Counted at once, a new
-- conversation held the user's row of `stored_usage` meanwhile, for which the one who had the turn waited: a deadlock. It is
-- counted at the end of its transaction instead.
CREATE FUNCTION conversation_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO stored_usage AS s (tenant, user_id, conversations) VALUES (NEW.tenant, NEW.user_id, 1)
    ON CONFLICT (tenant, user_id) DO UPDATE SET conversations = s.conversations + excluded.conversations;
    RETURN NULL;
END
$$;

DROP TRIGGER conversations_kept ON conversations;
CREATE CONSTRAINT TRIGGER conversations_kept AFTER INSERT ON conversations DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.unlisted = 0) EXECUTE FUNCTION conversation_kept();
