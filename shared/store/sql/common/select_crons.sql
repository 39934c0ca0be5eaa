-- Cron entries by name, those of nobody in particular before those of tenants. $1 name, $2 tenant, $3 enabled; NULL
-- matches all.
SELECT c.tenant, c.name, c.expression, c.timezone, c.overlap_policy, c.missed_policy, c.enabled, c.template, c.description, c.created_at, c.updated_at, c.next_run_at, c.last_run_at, c.last_job_id, c.runs, c.last_error
FROM crons AS c
WHERE ($1 IS NULL OR c.name = $1) AND ($2 IS NULL OR c.tenant = $2) AND ($3 IS NULL OR c.enabled = $3)
ORDER BY c.name, c.tenant
