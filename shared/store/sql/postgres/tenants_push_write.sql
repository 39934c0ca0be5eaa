-- What tenants used of their rates. Rows: tenant, window_at, enqueued.
-- Differs from SQLite: an array per column.
UPDATE tenant_limits
SET window_at = r.window_at,
    enqueued  = r.enqueued
FROM unnest($1, $2, $3) AS r (tenant, window_at, enqueued)
WHERE tenant_limits.tenant = r.tenant
