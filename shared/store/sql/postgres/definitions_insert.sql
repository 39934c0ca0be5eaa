-- Agent definitions by content. Differs from SQLite: an array per column.
INSERT INTO agent_definitions (digest, definition)
SELECT * FROM unnest($1, $2)
ON CONFLICT (digest) DO NOTHING
