-- Configures agent $1 of tenant $2, for run $3 or for all (''), with $4 when it was at version $5 before; nothing when somebody
-- else has configured it since.
INSERT INTO run_settings (agent_name, tenant, run, args, version)
VALUES ($1, $2, $3, $4, $5 + 1)
ON CONFLICT (agent_name, tenant, run) DO UPDATE
SET args = excluded.args, version = excluded.version
WHERE run_settings.version = $5
