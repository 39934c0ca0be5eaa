-- A definition goes with the last engagement that refers to it, unless an agent is registered with it.
CREATE INDEX engagements_digest ON engagements (digest);
DELETE FROM agent_definitions
WHERE digest NOT IN (SELECT e.digest FROM engagements AS e) AND digest NOT IN (SELECT a.digest FROM agents AS a);
