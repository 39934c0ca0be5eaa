-- The use of tenants' rates.
UPDATE tenant_limits
SET window_at = r.window_at,
    enqueued  = r.enqueued
FROM {rows: tenant, window_at, enqueued}
WHERE tenant_limits.tenant = r.tenant
