-- Registers or replaces an agent.
INSERT INTO agents {values: name, digest, source, updated_at, source_digest, tenants}
ON CONFLICT (name) DO UPDATE
SET digest = excluded.digest, source = excluded.source, updated_at = excluded.updated_at, source_digest = excluded.source_digest,
    tenants = excluded.tenants
WHERE agents.digest <> excluded.digest
   OR coalesce(agents.source_digest <> excluded.source_digest, agents.source <> excluded.source)
   OR coalesce(agents.tenants, '') <> coalesce(excluded.tenants, '')
