-- How many tenants have jobs. $1 tenant; NULL matches all.
SELECT count(DISTINCT j.tenant) AS tenants
FROM jobs AS j
WHERE j.tenant IS NOT NULL AND ($1 IS NULL OR j.tenant = $1)
