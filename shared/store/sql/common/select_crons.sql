SELECT {columns of cron entry}
FROM crons AS c
--- select_crons
-- Cron entries by name, those without a tenant before those of tenants. $1 name, $2 tenant, $3 enabled; NULL
-- matches all.
WHERE ($1 IS NULL OR c.name = $1) AND ($2 IS NULL OR c.tenant = $2) AND ($3 IS NULL OR c.enabled = $3)
ORDER BY c.name, c.tenant
--- select_due_crons
-- At most $2 cron entries whose next occurrence has come at $1, the longest due first.
WHERE c.next_run_at IS NOT NULL AND c.next_run_at <= $1
ORDER BY c.next_run_at, c.tenant, c.name
LIMIT $2
