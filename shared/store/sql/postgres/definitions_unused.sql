-- Definitions that neither an engagement, an input of one nor an agent refers to. $1: digests.
-- Differs from SQLite: an array; rows are locked, and those that somebody is about to refer to are left out.
SELECT d.digest
FROM agent_definitions AS d
WHERE d.digest = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.digest = d.digest)
  AND NOT EXISTS (SELECT 1 FROM input_definitions AS i WHERE i.digest = d.digest)
  AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.digest = d.digest)
FOR UPDATE OF d SKIP LOCKED
