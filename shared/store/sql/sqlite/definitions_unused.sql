-- Definitions that neither an engagement, an input of one nor an agent refers to. $1: JSON [[digest], …].
-- Differs from PostgreSQL: json_each, and nobody else writes.
SELECT d.digest
FROM json_each($1) AS r
JOIN agent_definitions AS d ON d.digest = r.value ->> 0
WHERE NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.digest = d.digest)
  AND NOT EXISTS (SELECT 1 FROM input_definitions AS i WHERE i.digest = d.digest)
  AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.digest = d.digest)
