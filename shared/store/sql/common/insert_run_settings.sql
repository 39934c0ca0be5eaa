-- Configures an agent of a tenant, for one run or for all ('') when it was at `version` before; nothing when that has
-- been configured since.
INSERT INTO run_settings (agent_name, tenant, run, args, version)
SELECT r.agent_name, r.tenant, r.run, r.args, r.version + 1 FROM {rows: agent_name, tenant, run, args, version}
WHERE true
ON CONFLICT (agent_name, tenant, run) DO UPDATE
SET args = excluded.args, version = excluded.version
WHERE run_settings.version = excluded.version - 1
