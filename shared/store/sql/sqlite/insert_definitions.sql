-- Agent definitions by content. $1: JSON rows. Differs from PostgreSQL: one connection writes, so
-- no definition is held.
INSERT INTO agent_definitions (digest, definition)
SELECT r.value ->> 0, r.value ->> 1 FROM json_each($1) AS r WHERE true
ON CONFLICT (digest) DO NOTHING
