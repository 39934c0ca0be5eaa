-- Definitions that neither an engagement, an input of one nor an agent refers to. Those that another transaction is
-- about to refer to are left out.
SELECT d.digest
FROM agent_definitions AS d
WHERE d.digest {in: digests}
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.digest = d.digest)
  AND NOT EXISTS (SELECT 1 FROM input_definitions AS i WHERE i.digest = d.digest)
  AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.digest = d.digest)
{lock of d skip}
