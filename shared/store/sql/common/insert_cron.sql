-- Makes a cron entry or replaces the one of its name.
INSERT INTO crons (tenant, name, expression, timezone, overlap_policy, missed_policy, enabled, template, description, next_run_at, created_at, updated_at)
SELECT r.*, r.updated_at
FROM {rows: tenant, name, expression, timezone, overlap_policy, missed_policy, enabled, template, description, next_run_at, updated_at}
WHERE true
ON CONFLICT (tenant, name) DO UPDATE
SET expression = excluded.expression, timezone = excluded.timezone, overlap_policy = excluded.overlap_policy,
    missed_policy = excluded.missed_policy, enabled = excluded.enabled, template = excluded.template,
    description = excluded.description, next_run_at = excluded.next_run_at, updated_at = excluded.updated_at,
    last_error = NULL
