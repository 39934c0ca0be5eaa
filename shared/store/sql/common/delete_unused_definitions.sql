-- Deletes definitions that nothing refers to: looked at again now that they are locked.
DELETE FROM agent_definitions
WHERE digest {in: digests}
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.digest = agent_definitions.digest)
  AND NOT EXISTS (SELECT 1 FROM input_definitions AS i WHERE i.digest = agent_definitions.digest)
  AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.digest = agent_definitions.digest)
