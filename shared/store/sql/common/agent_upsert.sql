-- Registers or replaces an agent.
INSERT INTO agents (name, digest, source, updated_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, source = excluded.source, updated_at = excluded.updated_at
WHERE agents.digest <> excluded.digest OR agents.source <> excluded.source
