-- What tenants used of their rates. Rows: tenant, window_at, enqueued.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE tenant_limits
SET window_at = r.value ->> 1,
    enqueued  = r.value ->> 2
FROM json_each($1) AS r
WHERE tenant_limits.tenant = r.value ->> 0
