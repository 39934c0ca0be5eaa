-- At most $2 cron entries whose next occurrence has come at $1, the longest due first.
SELECT c.tenant, c.name, c.expression, c.timezone, c.overlap_policy, c.missed_policy, c.enabled, c.template, c.description, c.created_at, c.updated_at, c.next_run_at, c.last_run_at, c.last_job_id, c.runs, c.last_error
FROM crons AS c
WHERE c.next_run_at IS NOT NULL AND c.next_run_at <= $1
ORDER BY c.next_run_at, c.tenant, c.name
LIMIT $2
