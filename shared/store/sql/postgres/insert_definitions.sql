-- Agent definitions by content. Existing ones are locked until the end of the transaction, so that retention does not
-- delete one that is about to be referred to.
-- Differs from SQLite: many connections write.
WITH held AS (
    SELECT d.digest FROM agent_definitions AS d WHERE d.digest = ANY($1) FOR KEY SHARE
)
INSERT INTO agent_definitions (digest, definition)
SELECT r.digest, r.definition
FROM unnest($1, $2) AS r (digest, definition)
WHERE r.digest NOT IN (SELECT h.digest FROM held AS h)
ON CONFLICT (digest) DO NOTHING
