-- The same as migrations/sqlite/0031_definitions_of_inputs.sql.
--
-- The agent of each input of an engagement that has several, and who answered reviews late.

-- An engagement's own agent is that of the input that works, or worked last.
CREATE TABLE input_definitions (
    job_seq      BIGINT  PRIMARY KEY,
    digest       TEXT    NOT NULL,
    retention_ms BIGINT                            -- how long that agent wants the conversation kept
);
CREATE INDEX input_definitions_digest ON input_definitions (digest);

-- Names between line breaks: each of them is told of once.
ALTER TABLE reviews ADD COLUMN late TEXT NOT NULL DEFAULT '';

-- Agents that further inputs had replaced stayed for ever.
DELETE FROM agent_definitions
WHERE NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.digest = agent_definitions.digest)
  AND NOT EXISTS (SELECT 1 FROM agents AS a WHERE a.digest = agent_definitions.digest);
