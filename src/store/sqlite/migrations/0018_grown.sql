-- What grows is looked up by an index: the approvals of a conversation, decided ones too, and files by their id alone.
CREATE INDEX approvals_of ON approvals (tenant, user_id, conversation, created_at, id);
CREATE UNIQUE INDEX files_by_id ON files (id);
