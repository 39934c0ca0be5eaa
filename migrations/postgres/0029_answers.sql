-- By what an answer of a user was given, so that the same once more is known; and of which questions somebody was told.

ALTER TABLE tool_calls ADD COLUMN answered_by TEXT;  -- the digest of the key that the client gave its answer
ALTER TABLE tool_calls ADD COLUMN told BIGINT NOT NULL DEFAULT 0 CHECK (told IN (0, 1));
ALTER TABLE reviews ADD COLUMN told BIGINT NOT NULL DEFAULT 0 CHECK (told IN (0, 1));
CREATE INDEX tool_calls_answered ON tool_calls (engagement_seq, answered_by) WHERE answered_by IS NOT NULL;
