-- Deletes definitions that nothing refers to. $1: JSON [[digest], …]. Differs from PostgreSQL: json_each.
DELETE FROM agent_definitions
WHERE digest IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.digest = agent_definitions.digest)
  AND NOT EXISTS (SELECT 1 FROM input_definitions AS i WHERE i.digest = agent_definitions.digest)
  AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.digest = agent_definitions.digest)
