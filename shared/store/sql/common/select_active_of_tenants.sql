-- Tenants whose active jobs are limited, and how many they have.
SELECT t.tenant, t.max_concurrency,
       (SELECT count(*) FROM jobs AS j WHERE j.tenant = t.tenant AND j.ended_at IS NULL AND j.state = 'active') AS active
FROM tenant_limits AS t
WHERE t.max_concurrency IS NOT NULL
