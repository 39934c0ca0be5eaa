-- Schemas by job type, the newest version first. $1 job type, $2 version; NULL matches all.
SELECT s.job_type, s.version, s.mode, s.body, s.created_at
FROM job_schemas AS s
WHERE ($1 IS NULL OR s.job_type = $1) AND ($2 IS NULL OR s.version = $2)
ORDER BY s.job_type, s.version DESC
