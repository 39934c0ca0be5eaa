-- How many jobs match. $1 state, $2 queue, $3 type; NULL matches all.
SELECT count(*) AS jobs
FROM jobs AS j
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
