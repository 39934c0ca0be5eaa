-- Tenants with their jobs, by name. $1 tenant; NULL matches all.
SELECT j.tenant, count(*) AS jobs, count(*) - count(j.ended_at) AS unfinished, max(j.created_at) AS last_at
FROM jobs AS j
WHERE j.tenant IS NOT NULL AND ($1 IS NULL OR j.tenant = $1)
GROUP BY j.tenant
ORDER BY j.tenant
LIMIT $2 OFFSET $3
