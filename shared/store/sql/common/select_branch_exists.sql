-- A row when $1 is the id of a branch or of a job of the tenant $2; NULL means every tenant.
SELECT b.id FROM branches AS b JOIN jobs AS j ON j.seq = b.job_seq WHERE b.id = $1 AND coalesce(j.tenant = $2, $2 IS NULL)
UNION ALL
SELECT j.id FROM jobs AS j WHERE j.id IN ($1, $1 || '~' || $2) AND coalesce(j.tenant = $2, $2 IS NULL)
