-- Makes a cron entry or replaces the one of its name.
INSERT INTO crons (tenant, name, expression, timezone, overlap_policy, missed_policy, enabled, template, description, next_run_at, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
ON CONFLICT (tenant, name) DO UPDATE
SET expression = excluded.expression, timezone = excluded.timezone, overlap_policy = excluded.overlap_policy,
    missed_policy = excluded.missed_policy, enabled = excluded.enabled, template = excluded.template,
    description = excluded.description, next_run_at = excluded.next_run_at, updated_at = excluded.updated_at,
    last_error = NULL
