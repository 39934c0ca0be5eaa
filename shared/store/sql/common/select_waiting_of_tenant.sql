-- How many jobs of tenant $1 wait, and how many of them are scheduled.
SELECT count(*) AS waiting, CAST(coalesce(sum(CASE WHEN j.state = 'scheduled' THEN 1 ELSE 0 END), 0) AS BIGINT) AS scheduled
FROM jobs AS j
WHERE j.tenant = $1 AND j.ended_at IS NULL AND j.state IN ('available', 'scheduled', 'retryable')
