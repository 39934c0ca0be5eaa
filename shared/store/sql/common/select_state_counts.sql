-- Jobs per state. $1 queue, $2 tenant; NULL matches all.
SELECT j.state, count(*) AS jobs
FROM jobs AS j
WHERE ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.state
