-- Tenants whose active jobs are limited, for a claim.
SELECT t.tenant FROM tenant_limits AS t WHERE t.max_concurrency IS NOT NULL ORDER BY t.tenant {lock skip}
