-- How many dead letters match. $1 queue, $2 type, $3 tenant, accepted from $4 until before $5; NULL matches all.
SELECT count(*) AS jobs
FROM jobs AS j
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.job_type = $2)
  AND ($3 IS NULL OR j.tenant = $3) AND ($4 IS NULL OR j.created_at >= $4) AND ($5 IS NULL OR j.created_at < $5)
