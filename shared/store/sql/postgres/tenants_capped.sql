-- Tenants whose active jobs are limited, for a claim.
-- Differs from SQLite: the rows are locked, and those that somebody else has are left out.
SELECT t.tenant FROM tenant_limits AS t WHERE t.max_concurrency IS NOT NULL ORDER BY t.tenant FOR UPDATE SKIP LOCKED
